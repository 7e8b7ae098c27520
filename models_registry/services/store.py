"""Where blobs lie: a content-addressed folder of read-only files, changed under a lock."""

import contextlib
import fcntl
import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from inference.gguf.examine import open_regular
from models_registry.models import DeploymentAdapter, ModelFile, VersionFile

CHUNK_BYTES = 8 * 1024 * 1024
# A blob without a row may belong to an import that is about to commit.
ORPHAN_SECONDS = 3600
_FICLONE = 0x40049409


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A private copy, complete and hashed, not yet in the store."""

    path: Path
    sha256: str
    size_bytes: int


def store_folder() -> Path:
    """Give the folder of blobs, made when it is not there."""
    folder = Path(settings.HOME) / "models"
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    return folder


@contextlib.contextmanager
def store_lock() -> Iterator[None]:
    """Keep imports and clean-ups of this store apart, across processes."""
    with (store_folder() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def stage_file(source: Path, *, is_ours: bool = False) -> Iterator[StagedFile]:
    """Copy a file into the store's staging folder, hashing what was copied.

    With ``is_ours`` the file is moved instead: only for files that nobody else can write. The
    staged file is removed at the end unless it has been placed.
    """
    folder = store_folder() / ".staging"
    folder.mkdir(exist_ok=True, mode=0o700)
    staged = folder / uuid.uuid4().hex
    try:
        with open_regular(source) as fd:
            _check_room(os.fstat(fd).st_size)
            if is_ours:
                source.rename(staged)
            else:
                _copy(fd, staged)
        staged.chmod(0o444)
        yield StagedFile(staged, hash_file(staged), staged.stat().st_size)
    except OSError as error:
        raise ValidationError(f"Cannot store the file: {error.strerror}.", code="store") from error
    finally:
        staged.unlink(missing_ok=True)


def place_file(staged: StagedFile) -> ModelFile:
    """Move a staged file to its place, give its row; needs ``store_lock`` and a transaction."""
    file, _ = ModelFile.objects.get_or_create(
        sha256=staged.sha256, defaults={"size_bytes": staged.size_bytes}
    )
    file.path.parent.mkdir(exist_ok=True)
    if not file.path.exists():
        staged.path.rename(file.path)
    return file


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file, in lower-case hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remove_unused_files() -> int:
    """Remove blobs that no version or adapter uses any more; give their number.

    Safe at any time: call it after deletions (in on_commit), and now and then for what cascades
    and crashes have left.
    """
    with store_lock():
        with transaction.atomic():
            unused = list(_unused_files().select_for_update())
            for file in unused:
                file.delete()
        for file in unused:
            file.path.unlink(missing_ok=True)
        return len(unused) + _remove_orphans()


def _unused_files() -> QuerySet[ModelFile]:
    # Two subqueries, since rows of an outer join cannot be locked.
    return ModelFile.objects.exclude(pk__in=VersionFile.objects.values("file")).exclude(
        pk__in=DeploymentAdapter.objects.values("file")
    )


def _remove_orphans() -> int:
    """Remove files of the store that have no row, once they are old."""
    known = set(ModelFile.objects.values_list("sha256", flat=True))
    oldest = time.time() - ORPHAN_SECONDS
    removed = 0
    for path in [*store_folder().glob("[0-9a-f][0-9a-f]/*"), *store_folder().glob(".staging/*")]:
        if path.name not in known and path.stat().st_ctime < oldest:
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _check_room(size_bytes: int) -> None:
    usage = os.statvfs(store_folder())
    if size_bytes > usage.f_bavail * usage.f_frsize:
        raise ValidationError("There is not enough disk space to store the file.", code="no_space")


def _copy(fd: int, target: Path) -> None:
    """Copy by reflink where the file system can, else byte by byte."""
    with target.open("xb") as stream:
        try:
            fcntl.ioctl(stream.fileno(), _FICLONE, fd)
        except OSError:
            position = 0
            while chunk := os.pread(fd, CHUNK_BYTES, position):
                stream.write(chunk)
                position += len(chunk)
        stream.flush()
        os.fsync(stream.fileno())
