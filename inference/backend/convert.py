"""Write a model again with matrices of another type, by llama.cpp's own quantization."""

import llama_cpp

from inference.backend import native
from inference.backend.params import num_cores

# The values of llama_ftype.
_FILE_TYPES = {"f16": 1, "q8_0": 7}


def write_converted(source: str, target: str, weight_type: str) -> str:
    """Convert ``source``, whose further shards are found by its name; gives what went wrong, or "".

    A target that could not be completed may be left behind.
    """
    native.initialize()
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = _FILE_TYPES[weight_type]
    params.allow_requantize = True
    params.nthread = num_cores()
    if llama_cpp.llama_model_quantize(source.encode(), target.encode(), params):
        return native.last_errors() or "llama.cpp refuses it"
    return ""
