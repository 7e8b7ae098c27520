"""Fetch the file of an upload, from where it stands, and hand it on to be checked."""

import fcntl
import logging
import os
import time
from collections.abc import Callable
from typing import IO

from django.utils import timezone

from models_registry.incoming.fetching.addresses import FetchRefused, read_url
from models_registry.incoming.fetching.answers import (
    FetchInterrupted,
    FileAnswer,
    ask_for_file,
    reading,
)
from models_registry.incoming.receiving import close_upload, look_at_header, refuse_upload
from models_registry.incoming.refusal import Refusal, UploadRefused
from models_registry.incoming.room import check_room
from models_registry.models import ModelImport, Upload, UploadState

logger = logging.getLogger(__name__)
NUM_TRIES = 5
FIRST_PAUSE_SECONDS = 1.0
_PIECE_BYTES = 1024 * 1024
_TOUCH_SECONDS = 10.0
# Slower than this over a minute counts as silent.
_SLOWEST_BYTES, _SLOW_SECONDS = 64 * 1024, 60.0

Progress = Callable[[Upload, int], None]


def fetch_upload(upload: Upload, *, tell: Progress = lambda _upload, _received: None) -> bool:
    """Fetch until the file is whole, trying again where the connection breaks.

    Gives whether it is whole and was handed on to be checked. What can never come is refused; what
    does not come for now stays, with the reason, for another try. ``tell`` hears of progress.
    """
    if upload.state != UploadState.RECEIVING or not upload.source_url:
        return False
    upload.path.touch(mode=0o600)
    with upload.path.open("r+b") as target:
        try:
            fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False  # somebody fetches it already
        try:
            _fetch(upload, target, tell)
        except UploadRefused as error:
            if error.refusal is not Refusal.BAD_FILE:
                refuse_upload(upload, error.code, error.message)
        except FetchRefused as error:
            refuse_upload(upload, Refusal.FETCH, str(error))
        except FetchInterrupted as error:
            logger.info("fetching %s stopped: %s", upload.id[:8], error)
            Upload.objects.filter(pk=upload.pk).update(code="stalled", reason=str(error))
    return close_upload(upload)


def _fetch(upload: Upload, target: IO[bytes], tell: Progress) -> None:
    num_left = NUM_TRIES
    while True:
        before = target.seek(0, os.SEEK_END)
        try:
            _fetch_once(upload, target, tell)
            return
        except FetchInterrupted:
            has_come_on = target.seek(0, os.SEEK_END) > before
            num_left = NUM_TRIES if has_come_on else num_left - 1
            if num_left <= 0:
                raise
            time.sleep(FIRST_PAUSE_SECONDS * 2 ** (NUM_TRIES - num_left))


def _fetch_once(upload: Upload, target: IO[bytes], tell: Progress) -> None:
    offset = target.seek(0, os.SEEK_END)
    if upload.size_bytes is not None and offset >= upload.size_bytes > 0:
        return
    tag = upload.source_tag
    with ask_for_file(upload.source_url, offset=offset, tag=tag) as answer:
        _take_head(upload, answer)
        target.truncate(answer.offset)
        target.seek(answer.offset)
        _copy(upload, answer, target, tell)


def _take_head(upload: Upload, answer: FileAnswer) -> None:
    """Note what the server says of the file, and see that there is room for it."""
    if upload.size_bytes is None:
        check_room(size_bytes=answer.size_bytes, owner=upload.model_import.owner)
    elif upload.size_bytes != answer.size_bytes:
        words = f"The file has {answer.size_bytes} bytes now, not {upload.size_bytes}."
        raise FetchRefused(words)
    upload.size_bytes, upload.source_tag = answer.size_bytes, answer.tag
    upload.code = upload.reason = ""
    upload.save(update_fields=["size_bytes", "source_tag", "code", "reason", "touched_at"])


def _copy(upload: Upload, answer: FileAnswer, target: IO[bytes], tell: Progress) -> None:
    reached, touched_at = answer.offset, time.monotonic()
    window_at, window_bytes = touched_at, 0
    host = read_url(upload.source_url).host
    while reached < answer.size_bytes:
        with reading(host):
            piece = answer.response.read1(min(_PIECE_BYTES, answer.size_bytes - reached))
        if not piece:
            raise FetchInterrupted(f"The connection ended after {reached} bytes.")
        _write(target, piece)
        before, reached = reached, reached + len(piece)
        window_bytes += len(piece)
        look_at_header(upload, before=before, reached=reached)
        tell(upload, reached)
        now = time.monotonic()
        if now - touched_at > _TOUCH_SECONDS:
            touched_at = now
            _touch(upload)
        if now - window_at > _SLOW_SECONDS:
            if window_bytes < _SLOWEST_BYTES:
                raise FetchInterrupted("The file comes too slowly.")
            window_at, window_bytes = now, 0


def _write(target: IO[bytes], piece: bytes) -> None:
    try:
        target.write(piece)
        target.flush()
    except OSError as error:
        raise FetchRefused(f"The server cannot store more bytes: {error.strerror}.") from error


def _touch(upload: Upload) -> None:
    """Show that it goes on; raises FetchRefused once somebody has taken the upload back."""
    now = timezone.now()
    if not Upload.objects.filter(pk=upload.pk).update(touched_at=now):
        raise FetchRefused("The import was taken back.")
    ModelImport.objects.filter(pk=upload.model_import_id).update(touched_at=now)
