"""Where blobs lie: a content-addressed folder of read-only files, changed under a lock."""

import contextlib
import errno
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
from models_registry.models import DeploymentAdapter, FileRole, ModelFile, Upload, VersionFile

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


@dataclass(frozen=True, slots=True)
class Source:
    """A file to be stored, and how: copied, or linked, or moved if ``is_ours`` alone.

    ``name`` is what people call it. ``sha256`` is the hash of a file of ours that was computed
    since the last byte was written. ``owner`` is whose quota it counts against.
    """

    path: Path
    name: str = ""
    role: FileRole = FileRole.WEIGHTS
    is_ours: bool = False
    is_linked: bool = False
    sha256: str = ""
    owner: str = ""


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
def stage_file(source: Source) -> Iterator[StagedFile]:
    """Bring a file into the store's staging folder, and hash what is there then.

    Files that nobody else can write are moved instead of copied; one whose hash is known stays
    where it is until it is placed, so that a crash loses nothing. What was staged is removed at
    the end unless it has been placed.
    """
    if source.is_ours and source.sha256:
        yield _take_hashed(source)
        return
    folder = store_folder() / ".staging"
    folder.mkdir(exist_ok=True, mode=0o700)
    staged = folder / uuid.uuid4().hex
    try:
        with open_regular(source.path) as fd:
            if source.is_ours:
                source.path.rename(staged)
            elif source.is_linked:
                _link(source.path, staged)
            else:
                _check_room(os.fstat(fd).st_size)
                _copy(fd, staged)
        staged.chmod(0o444)
        yield StagedFile(staged, hash_file(staged), staged.stat().st_size)
    except OSError as error:
        raise ValidationError(f"Cannot store the file: {error.strerror}.", code="store") from error
    finally:
        staged.unlink(missing_ok=True)


def place_file(staged: StagedFile, owner: str = "") -> ModelFile:
    """Move a staged file to its place, give its row; needs ``store_lock`` and a transaction."""
    file, _ = ModelFile.objects.get_or_create(
        sha256=staged.sha256, defaults={"size_bytes": staged.size_bytes, "owner": owner}
    )
    file.path.parent.mkdir(exist_ok=True)
    if not file.path.exists():
        staged.path.rename(file.path)
    return file


def _take_hashed(source: Source) -> StagedFile:
    """Take a file of ours as it lies, or the blob that it became before a crash."""
    blob = ModelFile(sha256=source.sha256).path
    path = source.path if source.path.exists() else blob
    with contextlib.suppress(FileNotFoundError):
        path.chmod(0o444)
        return StagedFile(path, source.sha256, path.stat().st_size)
    raise ValidationError(f"The file {source.name} is gone.", code="store")


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file, in lower-case hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_open_file(path: Path) -> str:
    """Likewise for a file of somebody else's; raises GgufRejected for what is no regular file."""
    with open_regular(path) as fd, os.fdopen(os.dup(fd), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def copy_file(fd: int, target: Path) -> int:
    """Copy an open file to a new place of ours; gives its size. Raises ValidationError."""
    try:
        _check_room(os.fstat(fd).st_size)
        _copy(fd, target)
        return target.stat().st_size
    except OSError as error:
        raise ValidationError(f"Cannot store the file: {error.strerror}.", code="store") from error


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
    # Subqueries, since rows of an outer join cannot be locked.
    expected = Upload.objects.exclude(stored_file=None).values("stored_file")
    return (
        ModelFile.objects.exclude(pk__in=VersionFile.objects.values("file"))
        .exclude(pk__in=DeploymentAdapter.objects.values("file"))
        .exclude(pk__in=expected)
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


def _link(source: Path, target: Path) -> None:
    """Give a file a second name: no copy, but whoever may change the first changes both."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        words = (
            "The file is on another disk than the models"
            if error.errno == errno.EXDEV
            else (f"The file cannot be linked ({error.strerror})")
        )
        raise ValidationError(f"{words}: have it copied.", code="link") from error


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
