"""Keep files, make batches, and move batches on, each step once."""

import contextlib
import os
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from llamero.accounts.selectors import Caller
from llamero.batches import store
from llamero.batches.models import OPEN_STATES, Batch, BatchState, Purpose, StoredFile
from llamero.batches.store import NewFile

WINDOW = timedelta(hours=24)
CANCELLABLE = (BatchState.VALIDATING, BatchState.IN_PROGRESS)
# Short transactions: a request that writes must not wait long for a clean-up.
_REMOVED_AT_ONCE = 200


class BatchLost(Exception):
    """Somebody else runs the batch now, or it was deleted: let go of it."""


def keep_file(
    *,
    new: NewFile,
    owner: str,
    key_id: int | None,
    purpose: Purpose,
    filename: str,
    seconds: int | None = None,
) -> StoredFile:
    """Keep a file that is whole, for so many seconds, or as long as all files are kept."""
    file_id, now = f"file-{secrets.token_hex(16)}", timezone.now()
    lifetime = timedelta(days=settings.FILE_DAYS) if seconds is None else timedelta(seconds=seconds)
    new.keep(file_id)
    try:
        return StoredFile.objects.create(
            id=file_id,
            owner=owner,
            api_key_id=key_id,
            purpose=purpose,
            filename=filename[:255],
            num_bytes=new.num_bytes,
            sha256=new.sha256,
            created_at=now,
            expires_at=now + lifetime,
        )
    except BaseException:
        store.remove(file_id)
        raise


def delete_file(*, file_id: str, owner: str) -> bool:
    """Delete a file; False where the owner has none of that id. Batches of it go on."""
    num_deleted, _ = StoredFile.objects.filter(id=file_id, owner=owner).delete()
    if num_deleted:
        store.remove(file_id)
    return bool(num_deleted)


def create_batch(
    *,
    caller: Caller,
    input_file: StoredFile,
    endpoint: str,
    metadata: dict[str, str],
    output_seconds: int | None,
) -> Batch:
    """Make a batch of a file. It has its own hold on the file's bytes, which may then be deleted.

    Raises FileNotFoundError where the file was deleted meanwhile.
    """
    batch_id, now = f"batch_{secrets.token_hex(16)}", timezone.now()
    work = store.work_folder(batch_id)
    work.mkdir(mode=0o700, parents=True)
    try:
        os.link(store.path_of(input_file.id), work / "input.jsonl")
        return Batch.objects.create(
            id=batch_id,
            owner=caller.owner,
            api_key_id=caller.key_id,
            grant=caller.grant and caller.grant.as_document(),
            endpoint=endpoint,
            metadata=metadata,
            input_file=input_file.id,
            output_seconds=output_seconds,
            created_at=now,
            expires_at=now + WINDOW,
        )
    except BaseException:
        store.remove_work(batch_id)
        raise


def cancel_batch(*, batch_id: str) -> bool:
    """Ask for a batch to be cancelled; False where it has ended, or is about to."""
    return bool(
        Batch.objects.filter(id=batch_id, state__in=CANCELLABLE).update(
            state=BatchState.CANCELLING, cancelling_at=timezone.now()
        )
    )


def claim_batch(*, batch_id: str) -> Batch:
    """Take a batch over from whoever had it; raises BatchLost where there is none to run."""
    with transaction.atomic():
        Batch.objects.filter(id=batch_id, state__in=OPEN_STATES).update(claim=F("claim") + 1)
        batch = Batch.objects.filter(id=batch_id, state__in=OPEN_STATES).first()
    if batch is None:
        raise BatchLost
    return batch


def note_progress(*, batch: Batch, **fields: Any) -> None:
    """Write how far a claimed batch is."""
    mine = Batch.objects.filter(id=batch.id, claim=batch.claim)
    if not mine.update(**fields):
        raise BatchLost
    _set(batch, fields)


def move_on(*, batch: Batch, to: BatchState, **fields: Any) -> bool:
    """Bring a claimed batch to its next state; False where it is in another one by now.

    Then the batch has the state that it is in: somebody wants it cancelled.
    """
    fields |= {"state": to, f"{to}_at": timezone.now()}
    mine = Batch.objects.filter(id=batch.id, claim=batch.claim)
    if mine.filter(state=batch.state).update(**fields):
        _set(batch, fields)
        return True
    state = mine.values_list("state", flat=True).first()
    if state is None:
        raise BatchLost
    batch.state = state
    return False


def remove_expired(*, now: datetime) -> None:
    """Delete files that have expired, batches that ended long ago, and bytes that have no row."""
    while files := list(StoredFile.objects.filter(expires_at__lte=now)[:_REMOVED_AT_ONCE]):
        StoredFile.objects.filter(id__in=[file.id for file in files]).delete()
        for file in files:
            store.remove(file.id)
    oldest = now - timedelta(days=settings.FILE_DAYS) - WINDOW
    ended = Batch.objects.filter(created_at__lt=oldest).exclude(state__in=OPEN_STATES)
    while ids := list(ended.values_list("id", flat=True)[:_REMOVED_AT_ONCE]):
        Batch.objects.filter(id__in=ids).delete()
    with contextlib.suppress(FileNotFoundError):
        store.sweep(
            files=set(StoredFile.objects.values_list("id", flat=True)),
            batches=set(Batch.objects.filter(state__in=OPEN_STATES).values_list("id", flat=True)),
        )


def _set(batch: Batch, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        setattr(batch, name, value)
