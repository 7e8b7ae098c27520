"""Where the bytes of files lie: a private folder of the home, one file each.

A new file is written aside, counted and hashed on the way, and gets its name when it is whole. The
database decides what there is: a file on disk without a row is swept up (``sweep``).
"""

import contextlib
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Container, Iterator
from pathlib import Path
from types import TracebackType

from django.conf import settings

from llamero.sockets import make_private_folder

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
# What has no row after so long never gets one.
ORPHAN_SECONDS = 24 * 3600.0


def folder() -> Path:
    """Give the folder of all files."""
    return Path(settings.HOME) / "files"


def incoming_folder() -> Path:
    """Give the folder of files that are not whole yet, which is made if need be."""
    make_private_folder(folder())
    found = folder() / "incoming"
    make_private_folder(found)
    return found


def path_of(file_id: str) -> Path:
    """Give where the bytes of a file lie. Ids are ours: their last two characters spread them."""
    return folder() / "kept" / file_id[-2:] / file_id


def work_folder(batch_id: str) -> Path:
    """Give the folder that holds the answers of a batch while it runs."""
    return folder() / "work" / batch_id


class NewFile:
    """A file being written. Leaving its context discards it unless it was kept."""

    def __init__(self) -> None:
        self._path = incoming_folder() / uuid.uuid4().hex
        self._file = os.fdopen(os.open(self._path, _NEW, 0o600), "wb")
        self._hash = hashlib.sha256()
        self.num_bytes = 0

    def __enter__(self) -> "NewFile":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()

    @property
    def sha256(self) -> str:
        """The hash of what was written so far."""
        return self._hash.hexdigest()

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._file.write(data)
        self._hash.update(data)
        self.num_bytes += len(data)

    def keep(self, file_id: str) -> None:
        """Put it where it belongs; what is on disk then is whole."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        path = path_of(file_id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.replace(path)

    def discard(self) -> None:
        """Close it, and remove it where it was not kept."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def remove(file_id: str) -> None:
    """Remove the bytes of a file; whoever reads it goes on to its end."""
    path_of(file_id).unlink(missing_ok=True)


def remove_work(batch_id: str) -> None:
    """Remove what a batch wrote while it ran."""
    shutil.rmtree(work_folder(batch_id), ignore_errors=True)


def sweep(files: Container[str], batches: Container[str]) -> int:
    """Remove what belongs to no file and no batch, and is old; give how many."""
    num_removed = 0
    for path in _old_entries():
        is_work, is_kept = path.parent.name == "work", path.parent.parent.name == "kept"
        if (is_work and path.name in batches) or (is_kept and path.name in files):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        num_removed += 1
    return num_removed


def _old_entries() -> Iterator[Path]:
    oldest = time.time() - ORPHAN_SECONDS
    for pattern in ("incoming/*", "kept/*/*", "work/*"):
        for path in folder().glob(pattern):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    yield path
