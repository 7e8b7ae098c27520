"""Write answers down when their runs have ended, also those that nobody watches.

A window asks for it when it was told the end; the control worker does it each second for all
others. Only the first to write succeeds.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta

from asgiref.sync import async_to_sync
from django.utils import timezone

from inference.protocol.events import Event
from inference.relay.connect import SyncRedis
from inference.relay.endings import LOST_EVENT
from inference.relay.history import LIVE_STATES, read_history, read_kept, read_states
from llamero import dispatch
from llamero.accounts.callers import Caller
from llamero.api.resuming import KeptRun, SocketRecipe, find_kept_run, is_run_kept, read_kept_run
from llamero.api.turn import TurnFormat
from llamero.errors import LlameroError
from llamero.playground.answers import Answer, as_failed, read_answer
from llamero.playground.models import Message, MessageState
from llamero.playground.selectors import list_running
from llamero.playground.services import end_answer

logger = logging.getLogger(__name__)

MAX_SETTLED_AT_ONCE = 200
# A window that watches is quicker; it should not find its answer written and its run let go.
_WATCHED = timedelta(seconds=5)
# A model may take so long to load before a run begins.
_LONGEST_OPENING = timedelta(minutes=30)
NEVER_BEGUN = LlameroError(
    410, "never_begun", "The window was closed before the model began to answer.", error_type="lost"
)


def settle_now(message: Message, caller: Caller, refusal: LlameroError | None = None) -> None:
    """Write an answer down if its run has ended; ``refusal`` is what a run ended in unbegun."""
    if message.state != MessageState.RUNNING:
        return
    answer = async_to_sync(_read_now)(message.run, caller)
    if answer is None and refusal is not None:
        if async_to_sync(is_run_kept)(message.run, caller):
            return
        answer = as_failed(Answer(), refusal)
    if answer is not None:
        end_answer(message=message, answer=answer)


def settle_answers(redis: SyncRedis) -> None:
    """Write down the answers that nobody watches; meant to run each second."""
    now = timezone.now()
    rows = list_running(now - _WATCHED, MAX_SETTLED_AT_ONCE)
    if not rows:
        return
    documents = read_kept(redis, [(owner, message.run) for message, owner in rows])
    for (message, _), document in zip(rows, documents, strict=True):
        kept = None if document is None else read_kept_run(document)
        if kept is not None:
            answer = _read_ended(redis, kept)
        elif message.created_at < now - _LONGEST_OPENING:
            answer = as_failed(Answer(), NEVER_BEGUN)
        else:
            continue
        if answer is not None:
            end_answer(message=message, answer=answer)


def _read_ended(redis: SyncRedis, kept: KeptRun) -> Answer | None:
    [job] = kept.jobs
    if read_states(redis, [job])[0] in LIVE_STATES:
        return None
    # What a job told that is unknown by now was lost with the broker.
    return read_answer([*read_history(redis, job), LOST_EVENT], _turn_of(kept))


async def _read_now(run: str, caller: Caller) -> Answer | None:
    try:
        kept = await find_kept_run(run, caller)
    except LlameroError:
        return None
    events: Sequence[Event] = await dispatch.get_dispatcher().history(kept.jobs[0])
    return read_answer(events, _turn_of(kept))


def _turn_of(kept: KeptRun) -> TurnFormat:
    return kept.recipe.turn if isinstance(kept.recipe, SocketRecipe) else TurnFormat()
