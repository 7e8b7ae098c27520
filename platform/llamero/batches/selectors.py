"""Find files and batches: only ever those of one owner, but for whoever runs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from llamero.batches.models import OPEN_STATES, Batch, StoredFile

Row = TypeVar("Row", StoredFile, Batch)
# What a list of batches need not read: it can be long.
_PROGRESS = ("done", "parts")


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is asked for: ``limit`` rows behind the row ``after``."""

    limit: int
    after: str = ""
    is_ascending: bool = False


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that waits for somebody to do something about it, and how far it is."""

    id: str
    owner: str
    state: str


def find_file(file_id: str, owner: str) -> StoredFile | None:
    """Find a file of an owner that has not expired."""
    return _live_files(owner).filter(id=file_id).first()


def list_files(owner: str, page: Page, purpose: str = "") -> tuple[list[StoredFile], bool] | None:
    """List files of an owner, and tell whether more follow; None where ``after`` is unknown."""
    files = _live_files(owner)
    return _cut(files.filter(purpose=purpose) if purpose else files, files, page)


def bytes_of(owner: str) -> int:
    """Count what the files of an owner take."""
    return int(_live_files(owner).aggregate(total=Sum("num_bytes"))["total"] or 0)


def find_batch(batch_id: str, owner: str) -> Batch | None:
    """Find a batch of an owner."""
    return Batch.objects.filter(id=batch_id, owner=owner).first()


def list_batches(owner: str, page: Page) -> tuple[list[Batch], bool] | None:
    """List batches of an owner, and tell whether more follow; None where ``after`` is unknown."""
    batches = Batch.objects.filter(owner=owner).defer(*_PROGRESS)
    return _cut(batches, batches, page)


def num_open(owner: str) -> int:
    """Count the batches of an owner that have not ended."""
    return Batch.objects.filter(owner=owner, state__in=OPEN_STATES).count()


def list_open(limit: int) -> Sequence[OpenBatch]:
    """List batches that have not ended, the oldest first."""
    rows = Batch.objects.filter(state__in=OPEN_STATES).order_by("created_at", "id")
    return [OpenBatch(*row) for row in rows.values_list("id", "owner", "state")[:limit]]


def _live_files(owner: str) -> QuerySet[StoredFile]:
    return StoredFile.objects.filter(owner=owner, expires_at__gt=timezone.now())


def _cut(
    rows: "QuerySet[Row]", all_rows: "QuerySet[Row]", page: Page
) -> tuple[list[Row], bool] | None:
    order = ("created_at", "id") if page.is_ascending else ("-created_at", "-id")
    if page.after:
        place = all_rows.filter(id=page.after).values_list("created_at", "id").first()
        if place is None:
            return None
        side = "gt" if page.is_ascending else "lt"
        same_time = Q(created_at=place[0], **{f"id__{side}": place[1]})
        rows = rows.filter(Q(**{f"created_at__{side}": place[0]}) | same_time)
    found = list(rows.order_by(*order)[: page.limit + 1])
    return found[: page.limit], len(found) > page.limit
