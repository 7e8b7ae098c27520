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
_dev_get_props = _bind(
    libggml, "ggml_backend_dev_get_props", None, ctypes.c_void_p, ctypes.c_void_p
)


class _Props(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("memory_free", ctypes.c_size_t),
        ("memory_total", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("device_id", ctypes.c_char_p),
        ("capabilities", ctypes.c_bool * 16),  # as many as there may ever be: not read here
    )


def list_native_devices() -> tuple[Device, ...]:
    """List what llama.cpp can compute on, GPUs in the order that main_gpu counts them."""
    native.initialize()
    return tuple(_describe(_dev_get(index)) for index in range(_dev_count()))


def _describe(device: int) -> Device:
    props = _Props()
    _dev_get_props(device, ctypes.byref(props))
    return Device(
        kind=_KINDS.get(props.type, "other"),
        id=_text(props.device_id),
        name=_text(props.name),
        description=_text(props.description),
        total_bytes=props.memory_total,
        free_bytes=props.memory_free,
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


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
