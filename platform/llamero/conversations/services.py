"""Keep responses, end them once, and forget them."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.utils import timezone

from llamero.accounts.selectors import Caller
from llamero.conversations.models import ResponseState, StoredResponse

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
    """Store a response, in progress or as it ended."""
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
        ended_at=None if state == ResponseState.IN_PROGRESS else timezone.now(),
    )


def end_response(*, response_id: str, state: ResponseState, outcome: bytes) -> bool:
    """Write how a response ended; False where somebody else did, or it was deleted."""
    in_progress = StoredResponse.objects.filter(id=response_id, state=ResponseState.IN_PROGRESS)
    return bool(in_progress.update(state=state, outcome=outcome, ended_at=timezone.now()))


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
