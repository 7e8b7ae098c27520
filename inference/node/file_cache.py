"""Model files that were fetched to this machine: found by hash, dropped longest unused first."""

import os
import time
from collections.abc import Collection
from pathlib import Path

from inference.protocol.nodes import CachedFile

MAX_LISTED = 100


class NoRoomError(Exception):
    """A file does not fit beside what may not be dropped."""


class FileCache:
    """A folder of complete files, and of partial ones beside it. Used by one thread at a time.

    ``limit_bytes`` bounds all of it; 0 leaves that to the disk.
    """

    def __init__(self, folder: Path, limit_bytes: int = 0) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes

    def find(self, sha256: str) -> Path | None:
        """Give a complete file."""
        path = self._place(sha256)
        return path if path.is_file() else None

    @property
    def limit_bytes(self) -> int:
        """What all of it may take; 0: what the disk has."""
        return self._limit_bytes

    def list_files(self) -> tuple[CachedFile, ...]:
        """Give the complete files that were used last, the latest first."""
        found = []
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            try:
                status = path.stat()
            except FileNotFoundError:  # it was just dropped
                continue
            used_at = status.st_atime_ns / 1e9
            found.append(CachedFile(sha256=path.name, size_bytes=status.st_size, used_at=used_at))
        found.sort(key=lambda file: file.used_at, reverse=True)
        return tuple(found[:MAX_LISTED])

    def note_use(self, sha256: str) -> None:
        """Let a file be dropped later than those used before now."""
        path = self._place(sha256)
        # The time of the last change stays: a replica knows by it what it has verified.
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))

    def partial(self, sha256: str) -> Path:
        """Give where a file is gathered."""
        folder = self._folder / "partial"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder / sha256

    def complete(self, sha256: str) -> None:
        """Move a gathered and verified file to its place."""
        partial, path = self.partial(sha256), self._place(sha256)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial.chmod(0o444)
        partial.rename(path)
        self.note_use(sha256)

    def make_room(self, num_bytes: int, keep: Collection[str]) -> None:
        """Drop files until so much more fits; never those in ``keep``, nor parts of them."""
        files = [path for path in self._files() if path.name not in keep]
        files.sort(key=lambda path: path.stat().st_atime_ns)
        while (missing := self._missing(num_bytes)) > 0:
            if not files:
                raise NoRoomError(f"{missing} bytes are missing to fetch a file of this model")
            files.pop(0).unlink()

    def _missing(self, num_bytes: int) -> int:
        disk = os.statvfs(self._folder)
        missing = num_bytes - disk.f_bavail * disk.f_frsize
        if self._limit_bytes:
            used = sum(path.stat().st_size for path in self._files())
            missing = max(missing, used + num_bytes - self._limit_bytes)
        return missing

    def _files(self) -> list[Path]:
        return [*self._folder.glob("[0-9a-f][0-9a-f]/*"), *self._folder.glob("partial/*")]

    def _place(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256
