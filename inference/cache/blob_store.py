"""Which saved prefixes are kept, where, and which go first? Host memory, then disk, by age."""

import logging
from concurrent.futures import Future
from dataclasses import dataclass

from inference.cache.disk_shelf import DiskCopy, DiskShelf
from inference.cache.holders import Blob

logger = logging.getLogger(__name__)

MAX_DISK_BLOBS = 256
"""Each keeps a file open, and a process often may have no more than 1,024."""


@dataclass(slots=True)
class _Write:
    """A state on its way to disk; in memory until it is there."""

    blob: Blob
    future: "Future[DiskCopy]"
    is_wanted: bool = True


class BlobStore:
    """Blobs within a limit of host bytes and one of disk bytes; the least recently used go.

    One blob more than the limits say may be in memory: the one that is being written to disk.
    """

    def __init__(
        self, host_bytes: int, disk_bytes: int = 0, shelf: DiskShelf | None = None
    ) -> None:
        self._host_limit, self._disk_limit = host_bytes, disk_bytes if shelf else 0
        self._shelf = shelf
        self._host: dict[Blob, None] = {}
        self._disk: dict[Blob, None] = {}
        self._writing: _Write | None = None
        self.num_host_bytes = 0
        self.num_disk_bytes = 0

    def __contains__(self, blob: Blob) -> bool:
        return blob in self._host or blob in self._disk or blob is self._on_its_way

    def __len__(self) -> int:
        return len(self._host) + len(self._disk) + (self._on_its_way is not None)

    @property
    def _on_its_way(self) -> Blob | None:
        """The blob that is being written to disk, unless nobody wants it any more."""
        write = self._writing
        return write.blob if write and write.is_wanted else None

    @property
    def max_bytes(self) -> int:
        """The largest blob that is taken."""
        return self._host_limit

    def put(self, blob: Blob) -> list[Blob]:
        """Take a blob in; returns those that had to go for it."""
        assert blob.num_bytes <= self.max_bytes and blob not in self
        self._host[blob] = None
        self.num_host_bytes += blob.num_bytes
        dropped = []
        while self.num_host_bytes > self._host_limit:
            oldest = next(iter(self._host))
            dropped += self._demote(oldest)
        return dropped

    def touch(self, blob: Blob) -> None:
        """Make a blob the last to go."""
        for shelf in (self._host, self._disk):
            if blob in shelf:
                del shelf[blob]
                shelf[blob] = None

    def load(self, blob: Blob) -> memoryview | None:
        """Give the state of a blob, or None where its disk copy is damaged."""
        if blob.state is not None:
            return blob.state
        assert blob.disk
        return blob.disk.read()

    def discard(self, blob: Blob) -> None:
        """Forget a blob and give its bytes back."""
        if blob in self._host:
            del self._host[blob]
            self.num_host_bytes -= blob.num_bytes
        elif blob in self._disk:
            del self._disk[blob]
            self.num_disk_bytes -= blob.num_bytes
            assert blob.disk
            blob.disk.close()
        elif self._writing and self._writing.blob is blob:
            self._writing.is_wanted = False
        blob.state = blob.disk = None

    def settle(self) -> list[Blob]:
        """Note what has reached the disk; returns the blobs that could not be written."""
        write = self._writing
        if write is None or not write.future.done():
            return []
        self._writing = None
        try:
            copy = write.future.result()
        except OSError as error:
            logger.warning("a prefix could not be spilled to disk: %s", error)
            write.blob.state = None
            return [write.blob] if write.is_wanted else []
        if not write.is_wanted:
            copy.close()
            return []
        dropped = self._make_disk_room(write.blob.num_bytes)
        write.blob.state, write.blob.disk = None, copy
        self._disk[write.blob] = None
        self.num_disk_bytes += write.blob.num_bytes
        return dropped

    def close(self) -> None:
        """Forget everything, and wait for the disk."""
        if self._shelf:
            self._shelf.close()
        self.settle()
        for blob in [*self._host, *self._disk]:
            self.discard(blob)

    def check_integrity(self) -> None:
        """Assert what must always hold."""
        assert self.num_host_bytes == sum(blob.num_bytes for blob in self._host)
        assert self.num_disk_bytes == sum(blob.num_bytes for blob in self._disk)
        assert self.num_host_bytes <= self._host_limit
        assert self.num_disk_bytes <= self._disk_limit
        assert all(blob.state is not None and blob.disk is None for blob in self._host)
        assert all(blob.state is None and blob.disk is not None for blob in self._disk)

    def _demote(self, blob: Blob) -> list[Blob]:
        """Take a blob out of host memory, to disk where that keeps up; returns what is lost."""
        del self._host[blob]
        self.num_host_bytes -= blob.num_bytes
        if self._shelf is None or self._writing or blob.num_bytes > self._disk_limit:
            blob.state = None
            return [blob]
        assert blob.state is not None
        self._writing = _Write(blob, self._shelf.write(blob.state))
        return []

    def _make_disk_room(self, num_bytes: int) -> list[Blob]:
        dropped = []
        while (
            self.num_disk_bytes + num_bytes > self._disk_limit or len(self._disk) >= MAX_DISK_BLOBS
        ):
            oldest = next(iter(self._disk))
            self.discard(oldest)
            dropped.append(oldest)
        return dropped
