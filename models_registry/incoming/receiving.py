"""Take files in, piece by piece. How far one has come, the length of its file alone tells."""

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from django.utils import timezone

from inference.gguf.examine import inspect_file
from inference.gguf.verdict import GgufRejected
from models_registry.incoming.companions import keep_facts
from models_registry.incoming.refusal import Refusal, UploadRefused
from models_registry.incoming.room import OPERATOR, check_room
from models_registry.models import ImportState, ModelFile, ModelImport, Upload, UploadState
from models_registry.names import display_text
from models_registry.services.store import store_lock

MAX_UPLOADS_OF_IMPORT = 1010
TOUCH_SECONDS = 30.0
# The permission of who sees the files of others, and so may have them for their hashes.
SEES_FILES = "models_registry.view_modelfile"
_COPY_BYTES = 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_TAKES_FILES = (ImportState.OPEN, ImportState.WAITING, ImportState.FAILED)


class Readable(Protocol):
    """What bytes can be read from: a file, or a request."""

    def read(self, size: int, /) -> bytes:
        """Give the next bytes, at most so many; none at the end."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a file: where it belongs, its bytes, and what they should hash to.

    ``algorithm`` is a name of hashlib's; empty where nothing was said.
    """

    offset: int
    num_bytes: int
    content: Readable
    algorithm: str = ""
    digest: bytes = b""


def begin_upload(
    *,
    model_import: ModelImport,
    name: str,
    size_bytes: int,
    sha256: str = "",
    source_url: str = "",
    sees_files: bool = False,
) -> Upload:
    """Make room for a file. One that the store has already is complete at once.

    But hashes are no secrets: that is only so for who ``sees_files`` of others, or once brought the
    file. All others prove that they have it by sending it. Raises UploadRefused where there is no
    room, or where the import takes no files any more.
    """
    check_takes_files(model_import)
    with store_lock():
        stored = find_stored(sha256=sha256, size_bytes=size_bytes)
        if stored is not None and not may_take(stored, model_import.owner, sees_files=sees_files):
            stored = None
        if stored is None:
            check_room(size_bytes=size_bytes, owner=model_import.owner)
        upload = Upload.objects.create(
            model_import=model_import,
            display_name=display_text(name),
            size_bytes=size_bytes,
            sha256=sha256,
            stored_file=stored,
            source_url=source_url,
        )
    if stored is not None:
        _take_stored(upload, stored)
    else:
        upload.path.touch(mode=0o600)
    return upload


def check_takes_files(model_import: ModelImport) -> None:
    """Raise UploadRefused for an import that takes no more files."""
    if model_import.state not in _TAKES_FILES:
        raise UploadRefused(Refusal.STATE, "This import takes no more files.")
    if model_import.uploads.count() >= MAX_UPLOADS_OF_IMPORT:
        raise UploadRefused(Refusal.STATE, "These are more files than a model can have.")


def find_stored(*, sha256: str, size_bytes: int) -> ModelFile | None:
    """Find the blob that has this hash and size, if its file is there."""
    if not is_sha256(sha256):
        return None
    file = ModelFile.objects.filter(sha256=sha256, size_bytes=size_bytes).first()
    return file if file is not None and file.path.exists() else None


def may_take(stored: ModelFile, owner: str, *, sees_files: bool) -> bool:
    """Tell whether somebody may have a stored file for its hash alone."""
    return sees_files or owner in (OPERATOR, stored.owner)


def is_size_known(size_bytes: int, *, owner: str, sees_files: bool) -> bool:
    """Tell whether a file of this size may be had for its hash: then hash it before sending it."""
    files = ModelFile.objects.filter(size_bytes=size_bytes)
    return (files if sees_files else files.filter(owner=owner)).exists()


def is_sha256(text: str) -> bool:
    """Tell whether a text is a SHA-256 in lower-case hex."""
    return bool(_SHA256.match(text))


def receive_chunk(upload: Upload, chunk: Chunk) -> int:
    """Append a piece; give where the upload stands then. The header is checked once it is there.

    Raises UploadRefused; a file that is no good is refused for ever, and its bytes are removed.
    """
    check_open(upload)
    assert upload.size_bytes is not None
    with _locked(upload.path) as target:
        end = target.seek(0, os.SEEK_END)
        if chunk.offset != end:
            message = f"The upload stands at {end}, not at {chunk.offset}."
            raise UploadRefused(Refusal.OFFSET, message, offset=end)
        if end + chunk.num_bytes > upload.size_bytes:
            message = f"{upload.size_bytes - end} bytes are left to send, not {chunk.num_bytes}."
            raise UploadRefused(Refusal.EXCESS, message, offset=end)
        reached = end + _append(target, chunk, end, upload.size_bytes - end)
    _touch(upload)
    look_at_header(upload, before=end, reached=reached)
    return reached


def look_at_header(upload: Upload, *, before: int, reached: int) -> None:
    """Check the header as soon as it can be: at the first bytes, and each time they doubled."""
    is_due = reached.bit_length() > before.bit_length()
    if upload.facts or not reached or not is_due or upload.size_bytes is None:
        return
    try:
        facts = inspect_file(upload.path, upload.size_bytes)
        if facts is not None:
            keep_facts(upload, facts)
    except GgufRejected as error:
        raise refuse_upload(upload, error.code, error.reason) from error


def refuse_upload(upload: Upload, code: str, reason: str) -> UploadRefused:
    """Give a file up and its disk space back; gives what its sender is told."""
    rows = Upload.objects.filter(
        pk=upload.pk, state__in=(UploadState.RECEIVING, UploadState.CHECKING)
    )
    rows.update(
        state=UploadState.REFUSED,
        code=code,
        reason=reason,
        source_url=upload.shown_source,
        touched_at=timezone.now(),
    )
    upload.state, upload.code, upload.reason = UploadState.REFUSED, code, reason
    upload.path.unlink(missing_ok=True)
    return UploadRefused(Refusal.BAD_FILE, reason, code=code)


def check_open(upload: Upload) -> None:
    """Raise UploadRefused for an upload that takes no bytes."""
    if upload.state == UploadState.REFUSED:
        raise UploadRefused(Refusal.GONE, upload.reason, code=upload.code)
    if upload.source_url:
        raise UploadRefused(Refusal.STATE, "The server fetches this file itself.")
    if upload.state != UploadState.RECEIVING:
        raise UploadRefused(Refusal.OFFSET, "The file is whole.", offset=upload.size_bytes)


def close_upload(upload: Upload) -> bool:
    """Hand a file whose bytes are all here on to be checked; tell whether this call did that."""
    if upload.state != UploadState.RECEIVING or upload.num_received != upload.size_bytes:
        return False
    rows = Upload.objects.filter(pk=upload.pk, state=UploadState.RECEIVING)
    moved = rows.update(
        state=UploadState.CHECKING, source_url=upload.shown_source, touched_at=timezone.now()
    )
    upload.refresh_from_db(fields=["state", "source_url"])
    return moved == 1


def note_sha256(upload: Upload, sha256: str) -> None:
    """Note what a file should hash to, which a client may know only at its end."""
    if sha256 and not upload.sha256 and upload.state == UploadState.RECEIVING:
        upload.sha256 = sha256
        Upload.objects.filter(pk=upload.pk).update(sha256=sha256)


def remove_import(model_import: ModelImport) -> None:
    """Take an import back, with what is here of its files; what it has become stays."""
    _check_rests(model_import)
    paths = [upload.path for upload in model_import.uploads.all()]
    model_import.delete()
    for path in paths:
        path.unlink(missing_ok=True)


def remove_upload(upload: Upload) -> None:
    """Forget a file, and remove what is here of it; not while something is made of it."""
    _check_rests(upload.model_import)
    path = upload.path
    upload.delete()
    path.unlink(missing_ok=True)


def _check_rests(model_import: ModelImport) -> None:
    if model_import.state == ImportState.IMPORTING:
        raise UploadRefused(Refusal.STATE, "It is being imported just now: wait a moment.")


def _take_stored(upload: Upload, stored: ModelFile) -> None:
    """Complete an upload by a blob that is here: nothing has to travel."""
    try:
        facts = inspect_file(stored.path, stored.size_bytes)
        assert facts is not None, "a stored file is whole"
        keep_facts(upload, facts)
    except GgufRejected as error:
        raise refuse_upload(upload, error.code, error.reason) from error
    upload.found_sha256 = stored.sha256
    upload.state = UploadState.COMPLETE
    upload.source_url = upload.shown_source
    upload.save(update_fields=["found_sha256", "state", "source_url", "touched_at"])


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for one writer at a time."""
    try:
        target = path.open("r+b")
    except FileNotFoundError:
        raise UploadRefused(Refusal.GONE, "What was here of this file is gone.") from None
    with target:
        try:
            fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = "Another request is writing to this upload."
            raise UploadRefused(Refusal.LOCKED, message) from None
        yield target


def _append(target: IO[bytes], chunk: Chunk, end: int, room: int) -> int:
    """Write a piece behind what is here, and give its length; a bad one is taken back.

    One that did not say how long it is may still be longer than the ``room`` for it.
    """
    digest = hashlib.new(chunk.algorithm, usedforsecurity=False) if chunk.algorithm else None
    num_bytes = 0
    try:
        while piece := chunk.content.read(_COPY_BYTES):
            num_bytes += len(piece)
            if num_bytes > room:
                _take_back(target, end)
                message = f"{room} bytes are left to send, and more came."
                raise UploadRefused(Refusal.EXCESS, message, offset=end)
            target.write(piece)
            if digest is not None:
                digest.update(piece)
        target.flush()
    except (OSError, ValueError) as error:
        _take_back(target, end)
        words = getattr(error, "strerror", None) or "the connection ended"
        message = f"The server cannot store more bytes: {words}."
        raise UploadRefused(Refusal.NO_SPACE, message, offset=end) from error
    if digest is not None and digest.digest() != chunk.digest:
        _take_back(target, end)
        raise UploadRefused(Refusal.CHECKSUM, "The bytes are not those that the checksum names.")
    return num_bytes


def _take_back(target: IO[bytes], end: int) -> None:
    with contextlib.suppress(OSError):
        target.truncate(end)


def _touch(upload: Upload) -> None:
    """Note that an upload lives, now and then."""
    now = timezone.now()
    if (now - upload.touched_at).total_seconds() > TOUCH_SECONDS:
        Upload.objects.filter(pk=upload.pk).update(touched_at=now)
        ModelImport.objects.filter(pk=upload.model_import_id).update(touched_at=now)
