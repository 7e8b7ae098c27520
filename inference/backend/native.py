"""llama.cpp's C API as this project uses it: quiet, and without needless GIL traffic.

ctypes releases the GIL around every call. For the long ones that is the point; for calls of a
few microseconds it costs more than it gives, since another thread may keep the GIL for a whole
switch interval. The functions below that are bound through PyDLL hold it.
"""

import collections
import contextlib
import ctypes
import logging
from collections.abc import Iterator
from typing import Any

import llama_cpp

logger = logging.getLogger(__name__)

_ERROR = 4
_LEVELS = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, _ERROR: logging.ERROR}
_partial_lines: list[str] = []
_last_errors: collections.deque[str] = collections.deque(maxlen=4)

_holding = ctypes.PyDLL(llama_cpp.llama_cpp._lib._name)


def _bind(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(_holding, name)
    function.restype, function.argtypes = result, list(arguments)
    return function


get_logits = _bind("llama_get_logits", ctypes.c_void_p, ctypes.c_void_p)
sampler_apply = _bind("llama_sampler_apply", None, ctypes.c_void_p, ctypes.c_void_p)
sampler_free = _bind("llama_sampler_free", None, ctypes.c_void_p)
sampler_accept = _bind("llama_sampler_accept", None, ctypes.c_void_p, ctypes.c_int32)


def _log(level: int, text: bytes, _user_data: Any) -> None:
    """Collect llama.cpp's pieces into lines of our own log; level 5 continues a line."""
    _partial_lines.append(text.decode("utf-8", "replace"))
    if not text.endswith(b"\n"):
        return
    line = "".join(_partial_lines).strip()
    _partial_lines.clear()
    if level == _ERROR:
        _last_errors.append(line)
    logger.log(_LEVELS.get(level, logging.DEBUG), "%s", line)


_log_callback = llama_cpp.llama_log_callback(_log)


def address_of(pointer: Any) -> int:
    """Give the address a ctypes pointer holds; 0 for none."""
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


def initialize() -> None:
    """Start the library and route its log; idempotent, and each load calls it."""
    llama_cpp.llama_log_set(_log_callback, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    _last_errors.clear()


@contextlib.contextmanager
def lines_left_out(text: str) -> Iterator[None]:
    """Keep lines with this text out of the log: what llama.cpp wonders at is meant so."""

    def is_told(record: logging.LogRecord) -> bool:
        return text not in record.getMessage()

    logger.addFilter(is_told)
    try:
        yield
    finally:
        logger.removeFilter(is_told)


def last_errors() -> str:
    """Give what llama.cpp complained of since the load began, for the reason of a failure."""
    return "; ".join(_last_errors)
