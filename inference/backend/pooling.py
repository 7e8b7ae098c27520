"""How does a deployment pool its vectors: as its profile says, or as its model does?"""

import ctypes

import llama_cpp

from inference.backend.llama_model import LlamaModel
from inference.protocol.errors import EngineError, ErrorCode

NATIVE_POOLING = {
    "none": llama_cpp.LLAMA_POOLING_TYPE_NONE,
    "mean": llama_cpp.LLAMA_POOLING_TYPE_MEAN,
    "cls": llama_cpp.LLAMA_POOLING_TYPE_CLS,
    "last": llama_cpp.LLAMA_POOLING_TYPE_LAST,
    "rank": llama_cpp.LLAMA_POOLING_TYPE_RANK,
}


def choose_pooling(model: LlamaModel, wanted: str, *, is_rank: bool, is_causal: bool) -> str:
    """Give the pooling of a deployment; raises EngineError for one that cannot be.

    Where neither profile nor file say anything, causal models give the vector of their last token,
    which has seen all others, and encoders the mean.
    """
    if wanted and wanted not in NATIVE_POOLING:
        known = ", ".join(NATIVE_POOLING)
        raise _refuse(f"Unknown pooling '{wanted}'; known are {known}.")
    if is_rank:
        if wanted not in ("", "rank"):
            raise _refuse(f"A reranking model cannot pool by '{wanted}': leave pooling empty.")
        return "rank"
    if wanted == "rank":
        raise _refuse("Pooling 'rank' gives scores, not vectors: the model's kind must be rerank.")
    pooling = wanted or _stated_pooling(model)
    if pooling == "rank":
        raise _refuse(
            "The file is of a reranking model: its kind must be rerank, or choose another pooling."
        )
    return pooling or ("last" if is_causal else "mean")


def _stated_pooling(model: LlamaModel) -> str:
    """Give what the file says, empty for nothing."""
    architecture = _read_key(model, "general.architecture")
    number = _read_key(model, f"{architecture}.pooling_type")
    by_number = {str(native): name for name, native in NATIVE_POOLING.items()}
    return by_number.get(number, "")


def _read_key(model: LlamaModel, key: str) -> str:
    buffer = ctypes.create_string_buffer(128)
    # Gives -1 for a key that is not there, and leaves the buffer empty.
    llama_cpp.llama_model_meta_val_str(model.handle, key.encode(), buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")


def _refuse(message: str) -> EngineError:
    return EngineError(ErrorCode.ENGINE_FAILED, message)
