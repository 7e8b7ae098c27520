"""Which devices does the installed llama.cpp see, and does a profile fit them?

As a program it prints the devices as JSON: the node agent asks so, in a process that ends, since
a GPU's driver keeps memory for every process that has opened it.
"""

import ctypes
import sys
from typing import Any

import msgspec
from llama_cpp._ggml import libggml

from inference.backend import native
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.nodes import Device, usable_gpus
from inference.protocol.replicas import RuntimeProfile

_KINDS = {0: "cpu", 1: "gpu", 2: "igpu", 3: "accel"}


def _bind(library: Any, name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype, function.argtypes = result, list(arguments)
    return function


_dev_count = _bind(libggml, "ggml_backend_dev_count", ctypes.c_size_t)
_dev_get = _bind(libggml, "ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)
_dev_name = _bind(libggml, "ggml_backend_dev_name", ctypes.c_char_p, ctypes.c_void_p)
_dev_description = _bind(libggml, "ggml_backend_dev_description", ctypes.c_char_p, ctypes.c_void_p)
_dev_type = _bind(libggml, "ggml_backend_dev_type", ctypes.c_int, ctypes.c_void_p)
_size = ctypes.POINTER(ctypes.c_size_t)
_dev_memory = _bind(libggml, "ggml_backend_dev_memory", None, ctypes.c_void_p, _size, _size)


def list_native_devices() -> tuple[Device, ...]:
    """List what llama.cpp can compute on, GPUs in the order that main_gpu counts them."""
    native.initialize()
    return tuple(_describe(_dev_get(index)) for index in range(_dev_count()))


def _describe(device: int) -> Device:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _dev_memory(device, ctypes.byref(free), ctypes.byref(total))
    return Device(
        kind=_KINDS.get(_dev_type(device), "other"),
        name=_dev_name(device).decode("utf-8", "replace"),
        description=_dev_description(device).decode("utf-8", "replace"),
        total_bytes=total.value,
        free_bytes=free.value,
    )


def check_devices(profile: RuntimeProfile, devices: tuple[Device, ...]) -> None:
    """Refuse a profile that names GPUs which are not here; raises EngineError.

    Without any GPU the settings mean nothing, and the model runs on the CPU.
    """
    gpus = usable_gpus(devices)
    if not gpus or profile.num_gpu_layers == 0:
        return
    names = ", ".join(gpu.name for gpu in gpus)
    if profile.split_mode == "none" and profile.main_gpu >= len(gpus):
        raise EngineError(
            ErrorCode.ENGINE_FAILED,
            f"The main GPU is {profile.main_gpu}, but this node has {len(gpus)} from 0: {names}.",
        )
    if len(profile.tensor_split) > len(gpus):
        raise EngineError(
            ErrorCode.ENGINE_FAILED,
            f"The tensor split has {len(profile.tensor_split)} shares, but this node has "
            f"{len(gpus)} GPU(s): {names}.",
        )


def main() -> int:
    """Print the devices."""
    sys.stdout.buffer.write(msgspec.json.encode(list_native_devices()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
