"""How does a large, mostly unused KV cache cost only the memory it uses?

llama.cpp clears the whole cache when it makes a context, so every page of it becomes resident.
On Linux a watcher follows the clearing and gives pages that are all zero back: they read as zero
when next touched, so nothing changes but the resident size, and the clearing itself stays in
memory the machine has already warmed. Elsewhere this does nothing.
"""

import contextlib
import ctypes
import logging
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

_MIN_BYTES = 32 * 2**20
_CHUNK_BYTES = 2 * 2**20
_PAGE_BYTES = 4096
_MADV_DONTNEED = 4
_MADV_HUGEPAGE = 14
_MADV_NOHUGEPAGE = 15
_POLL_SECONDS = 0.002
_SWITCH_SECONDS = 60.0
# A sweep of many gigabytes lets the heartbeat have the GIL now and then.
_HOLD_SECONDS, _PAUSE_SECONDS = 0.2, 0.001

Range = tuple[int, int]


@contextlib.contextmanager
def untouched_pages_released() -> Iterator[None]:
    """Make a context inside: the pages it only cleared are given back."""
    if not sys.platform.startswith("linux"):
        yield
        return
    watcher = _Watcher()
    watcher.start()
    try:
        yield
    finally:
        watcher.finish()
    logger.info("gave back %d MiB of untouched cache memory", watcher.num_released // 2**20)


class _Watcher(threading.Thread):
    """Sweep each large range that appears, always behind the thread that clears it."""

    def __init__(self) -> None:
        super().__init__(name="kv-pages", daemon=True)
        self.num_released = 0
        self._before = _anonymous_ranges()
        self._is_done = threading.Event()
        self._swept: dict[int, int] = {}
        # Bound through PyDLL, so that calls keep the GIL.
        self._libc = ctypes.PyDLL(None)
        self._libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        self._libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]

    def run(self) -> None:
        with _no_forced_switch():
            while not self._is_done.wait(_POLL_SECONDS):
                for low, high in self._large_new_ranges():
                    self._sweep(low, high, is_cleared=False)

    def finish(self) -> None:
        """Stop following, and sweep what is left; the context is made by now."""
        self._is_done.set()
        self.join()
        with _no_forced_switch():
            for low, high in self._large_new_ranges():
                self._sweep(low, high, is_cleared=True)
                self._libc.madvise(low, high - low, _MADV_NOHUGEPAGE)

    def _sweep(self, low: int, high: int, *, is_cleared: bool) -> None:
        """Give back cleared chunks: those before a resident one, or all once clearing is over."""
        if low not in self._swept:
            self._libc.madvise(low, high - low, _MADV_HUGEPAGE)
        at = self._swept.get(low, low)
        pause_at = time.monotonic() + _HOLD_SECONDS
        while at + _CHUNK_BYTES < high and (is_cleared or self._is_resident(at + _CHUNK_BYTES)):
            if self._is_resident(at):
                self._release(at)
            at += _CHUNK_BYTES
            if time.monotonic() > pause_at:
                time.sleep(_PAUSE_SECONDS)
                pause_at = time.monotonic() + _HOLD_SECONDS
        self._swept[low] = at

    def _release(self, chunk: int) -> None:
        if any(ctypes.string_at(chunk, 8)):
            return
        if self._libc.memcmp(chunk, chunk + 8, _CHUNK_BYTES - 8) == 0:
            self._libc.madvise(chunk, _CHUNK_BYTES, _MADV_DONTNEED)
            self.num_released += _CHUNK_BYTES

    def _is_resident(self, address: int) -> bool:
        answer = ctypes.create_string_buffer(1)
        return self._libc.mincore(address, _PAGE_BYTES, answer) == 0 and bool(answer.raw[0] & 1)

    def _large_new_ranges(self) -> list[Range]:
        new = [piece for whole in _anonymous_ranges() for piece in _subtract(whole, self._before)]
        return [(low, high) for low, high in new if high - low >= _MIN_BYTES]


def _anonymous_ranges() -> list[Range]:
    """List the address ranges of private, writable memory without a file behind it."""
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split()
        if fields[1] == "rw-p" and fields[4] == "0" and len(fields) == 5:
            start, end = (int(address, 16) for address in fields[0].split("-"))
            ranges.append((start, end))
    return ranges


def _subtract(whole: Range, parts: list[Range]) -> list[Range]:
    rest = [whole]
    for start, end in parts:
        pieces = []
        for low, high in rest:
            pieces += [(low, min(high, start)), (max(low, end), high)]
        rest = [(low, high) for low, high in pieces if low < high]
    return rest


@contextlib.contextmanager
def _no_forced_switch() -> Iterator[None]:
    """Keep the GIL between calls, so that no Python thread fills a page after its check."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    time.sleep(2 * interval)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
