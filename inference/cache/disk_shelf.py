"""How do saved states lie on disk where nobody else can read, change or find them?"""

import hashlib
import logging
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

logger = logging.getLogger(__name__)


class DiskCopy:
    """One state in a file without a name: it is gone with the process, however that ends.

    Only bytes with the digest that was kept in memory are given back.
    """

    def __init__(self, directory: Path, state: memoryview) -> None:
        self._num_bytes = state.nbytes
        self._digest = hashlib.sha256(state).digest()
        self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115
        try:
            self._file.write(state)
            self._file.flush()
        except BaseException:
            self._file.close()
            raise

    def read(self) -> memoryview | None:
        """Give the state back, or None where the disk does not have what was written."""
        state = memoryview(bytearray(self._num_bytes))
        try:
            self._file.seek(0)
            num_read = self._file.readinto(state)
        except OSError as error:
            logger.warning("a spilled prefix could not be read: %s", error)
            return None
        if num_read != self._num_bytes or hashlib.sha256(state).digest() != self._digest:
            logger.warning("a spilled prefix is not what was written, and is dropped")
            return None
        return state

    def close(self) -> None:
        """Give the space back."""
        self._file.close()


class DiskShelf:
    """Writes states on a thread of its own, so that no step waits for a disk."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._writer = ThreadPoolExecutor(1, "spill")

    def write(self, state: memoryview) -> "Future[DiskCopy]":
        """Begin to write a state; the future raises OSError where the disk refuses."""
        return self._writer.submit(DiskCopy, self._directory, state)

    def close(self) -> None:
        """Wait for what is being written."""
        self._writer.shutdown()
