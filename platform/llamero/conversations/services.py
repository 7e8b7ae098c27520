"""Keep responses, end them once, and forget them."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from llamero.accounts.selectors import Caller
from llamero.conversations.models import ResponseState, StoredResponse
from llamero.conversations.selectors import measure_responses

# Short transactions: a request that writes must not wait long for a clean-up.
_REMOVED_AT_ONCE = 200
_USED_STEP = timedelta(hours=1)


def keep_response(
    *,
    response_id: str,
    caller: Caller,
    model_pk: int,
    previous: str,
    question: bytes,
    is_background: bool = False,
    job: str = "",
    state: ResponseState = ResponseState.IN_PROGRESS,
    outcome: bytes | None = None,
) -> None:
    """Store a response, in progress or as it ended; the owner's oldest make room for it."""
    StoredResponse.objects.create(
        id=response_id,
        owner=caller.owner,
        api_key_id=caller.key_id,
        model_id=model_pk,
        previous=previous,
        question=question,
        is_background=is_background,
        job=job,
        state=state,
        outcome=outcome,
        num_bytes=len(question) + len(outcome or b""),
        ended_at=None if state == ResponseState.IN_PROGRESS else timezone.now(),
    )
    _make_room(caller.owner, response_id)


def end_response(*, response_id: str, state: ResponseState, outcome: bytes) -> bool:
    """Write how a response ended; False where somebody else did, or it was deleted."""
    in_progress = StoredResponse.objects.filter(id=response_id, state=ResponseState.IN_PROGRESS)
    num_bytes = F("num_bytes") + len(outcome)
    return bool(
        in_progress.update(
            state=state, outcome=outcome, ended_at=timezone.now(), num_bytes=num_bytes
        )
    )


def note_use(*, responses: Iterable[StoredResponse]) -> None:
    """Have a conversation kept as long as it is gone on with; written once an hour at most."""
    now = timezone.now()
    due = [one.id for one in responses if one.used_at < now - _USED_STEP]
    if due:
        StoredResponse.objects.filter(id__in=due).update(used_at=now)


def delete_response(*, response_id: str, owner: str) -> bool:
    """Delete one response with its contents; False where the owner has none of that id."""
    num_deleted, _ = StoredResponse.objects.filter(id=response_id, owner=owner).delete()
    return bool(num_deleted)


def remove_unused_responses(*, before: datetime) -> int:
    """Delete what ended and was not used since a time; give how many."""
    unused = StoredResponse.objects.filter(used_at__lt=before).exclude(
        state=ResponseState.IN_PROGRESS
    )
    num_removed = 0
    while ids := list(unused.values_list("id", flat=True)[:_REMOVED_AT_ONCE]):
        num_removed += StoredResponse.objects.filter(id__in=ids).delete()[0]
    return num_removed


def _make_room(owner: str, newest: str) -> None:
    """Delete the owner's longest unused until the rest is within bounds; none in progress."""
    found = measure_responses(owner)
    num_over = found.num_responses - settings.KEY_RESPONSES
    bytes_over = found.num_bytes - settings.KEY_RESPONSE_BYTES
    if num_over <= 0 and bytes_over <= 0:
        return
    ended = StoredResponse.objects.filter(owner=owner).exclude(state=ResponseState.IN_PROGRESS)
    doomed: list[str] = []
    for response_id, num_bytes in (
        ended.exclude(id=newest).order_by("used_at").values_list("id", "num_bytes").iterator()
    ):
        if num_over <= 0 and bytes_over <= 0:
            break
        doomed.append(response_id)
        num_over, bytes_over = num_over - 1, bytes_over - num_bytes
    for start in range(0, len(doomed), _REMOVED_AT_ONCE):
        StoredResponse.objects.filter(id__in=doomed[start : start + _REMOVED_AT_ONCE]).delete()
