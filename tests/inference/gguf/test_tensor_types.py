"""Our table of tensor types is the installed library's."""

import ctypes
from pathlib import Path

import gguf
import pytest

from inference.gguf.architectures import KNOWN, NOT_SERVED
from inference.gguf.tensor_types import TENSOR_TYPES


def load_ggml() -> ctypes.CDLL:
    """Load libggml-base, which needs no model and does nothing by itself."""
    import importlib.util

    spec = importlib.util.find_spec("llama_cpp")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "lib"
    names = ("libggml-base.so", "libggml-base.dylib")
    path = next((folder / name for name in names if (folder / name).exists()), None)
    if path is None:
        pytest.skip("libggml-base is not where it is looked for")
    library = ctypes.CDLL(str(path))
    library.ggml_blck_size.restype = ctypes.c_int64
    library.ggml_type_size.restype = ctypes.c_size_t
    return library


def test_blocks_and_sizes_are_those_of_the_library() -> None:
    library = load_ggml()
    for number, kind in TENSOR_TYPES.items():
        measured = library.ggml_blck_size(number), library.ggml_type_size(number)
        assert measured == (kind.block, kind.size_bytes), kind.name


def test_removed_types_are_left_out() -> None:
    assert not {4, 5, 31, 32, 33, 36, 37, 38} & TENSOR_TYPES.keys()


def test_every_architecture_that_the_converter_writes_is_known() -> None:
    written = set(gguf.MODEL_ARCH_NAMES.values())
    assert written - KNOWN <= NOT_SERVED
