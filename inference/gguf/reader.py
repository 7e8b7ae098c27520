"""Read a file's bytes in order, never past its end, never more than was promised."""

import os
import struct

from inference.gguf.verdict import GgufRejected

WINDOW_BYTES = 256 * 1024
MAX_METADATA_BYTES = 256 * 1024 * 1024

_U64 = struct.Struct("<Q")
_U32 = struct.Struct("<I")


class BoundedReader:
    """A cursor over a file by ``pread``: a shrinking file raises, where a map would SIGBUS."""

    def __init__(self, fd: int, size_bytes: int) -> None:
        self._fd = fd
        self.size_bytes = size_bytes
        self.position = 0
        self._window = b""
        self._window_start = 0

    @property
    def remaining(self) -> int:
        """Bytes from the cursor to the end of the file."""
        return self.size_bytes - self.position

    def peek(self, count: int) -> bytes:
        """Give up to ``count`` of the next bytes, as many as are there."""
        return self._read(min(count, self.remaining), self.position)

    def take(self, count: int) -> bytes:
        """Give the next ``count`` bytes; the caller has bounded ``count``."""
        start = self.position - self._window_start
        if start < 0 or start + count > len(self._window):
            self._load(count)
            start = 0
        self.position += count
        return self._window[start : start + count]

    def u32(self) -> int:
        """Read an unsigned 32-bit integer."""
        return int(_U32.unpack(self.take(4))[0])

    def u64(self) -> int:
        """Read an unsigned 64-bit integer."""
        return int(_U64.unpack(self.take(8))[0])

    def string(self, max_bytes: int) -> bytes:
        """Read a string whose length is checked before a byte of it is read."""
        at = self.position
        length = self.u64()
        self._check_string(length, max_bytes, at)
        return self.take(length)

    def strings(self, count: int, max_bytes: int, *, is_kept: bool) -> list[bytes]:
        """Read ``count`` strings. Without ``is_kept`` they are checked and dropped."""
        kept: list[bytes] = []
        for _ in range(count):
            at = self.position
            length = self.u64()
            self._check_string(length, max_bytes, at)
            text = self.take(length)
            if is_kept:
                kept.append(text)
        return kept

    def _check_string(self, length: int, max_bytes: int, at: int) -> None:
        if length > self.remaining:
            raise GgufRejected(
                "string_len", f"A string claims {length} bytes, more than the file has left.", at
            )
        if length > max_bytes:
            raise GgufRejected(
                "string_len", f"A string of {length} bytes is longer than {max_bytes}.", at
            )

    def _read(self, count: int, position: int) -> bytes:
        return os.pread(self._fd, count, position)

    def _load(self, count: int) -> None:
        if count > self.remaining:
            raise GgufRejected("truncated", "The file ends within its header.", self.position)
        if self.position + count > MAX_METADATA_BYTES:
            raise GgufRejected("metadata_size", "The header is larger than 256 MiB.", self.position)
        wanted = min(max(count, WINDOW_BYTES), self.remaining)
        parts: list[bytes] = []
        done = 0
        # A file that is still being sent may end within the window, but not before ``count``.
        while done < wanted and (part := self._read(wanted - done, self.position + done)):
            parts.append(part)
            done += len(part)
        if done < count:
            reason = "The file is shorter than it was said to be."
            raise GgufRejected("shrank", reason, self.position)
        self._window = b"".join(parts)
        self._window_start = self.position
