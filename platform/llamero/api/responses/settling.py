"""Responses that go on without their clients: whoever sees one end writes it down, once.

That is a client's stream, a client that asks, or the control worker, whichever comes first. Only
the first to write succeeds, and all others tell what it wrote.
"""

import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from inference.protocol.events import Event, Failed
from inference.relay.connect import SyncRedis
from inference.relay.endings import LOST_EVENT
from inference.relay.history import LIVE_STATES, read_history, read_states
from llamero import dispatch
from llamero.api.responses.contents import Outcome, make_outcome, outcome_of, question_of
from llamero.api.responses.lookup import no_such_response
from llamero.api.responses.writer import PASSING, ResponseRecipe, ResponseWriter
from llamero.api.threads import run_in_thread
from llamero.conversations.models import StoredResponse
from llamero.conversations.packing import pack
from llamero.conversations.selectors import find_response, list_in_progress
from llamero.conversations.services import end_response
from llamero.errors import LlameroError

logger = logging.getLogger(__name__)
MAX_SETTLED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a response that is in progress."""

    response_id: str
    owner: str
    recipe: ResponseRecipe

    @classmethod
    def of(cls, row: StoredResponse) -> "Ending":
        """Give that of a stored response."""
        return cls(row.id, row.owner, question_of(row).recipe)

    def write(self, events: Sequence[Event]) -> Outcome:
        """Write it down, unless somebody has; give what is written.

        Raises LlameroError if the response was deleted meanwhile.
        """
        outcome = make_outcome(self.recipe, events, is_retold=True)
        packed = pack(outcome)
        if end_response(response_id=self.response_id, state=outcome.state, outcome=packed):
            return outcome
        row = find_response(self.response_id, self.owner)
        written = None if row is None else outcome_of(row)
        if written is None:
            raise no_such_response(self.response_id)
        return written

    async def keep(self, writer: ResponseWriter, events: list[Event]) -> None:
        """Write down what a reader of the job saw, and have its ``writer`` tell what is written.

        That a connection ended is no end of the response.
        """
        last = events[-1]
        if type(last) is Failed and last.code in PASSING:
            return
        writer.final = (await run_in_thread(partial(self.write, events))).document


def settle_responses(redis: SyncRedis) -> None:
    """End the responses whose jobs have ended, or are lost; meant to run each second.

    A job is known to the broker before its response is to the database: one that is not known is
    one whose events have expired, or were lost with the broker.
    """
    rows = list_in_progress(MAX_SETTLED_AT_ONCE)
    states = read_states(redis, [row.job for row in rows]) if rows else []
    for row, state in zip(rows, states, strict=True):
        if state in LIVE_STATES:
            continue
        try:
            Ending.of(row).write(read_history(redis, row.job) or [LOST_EVENT])
        except (LlameroError, msgspec.DecodeError, zlib.error) as error:
            logger.warning("response %s cannot be ended: %s", row.id, type(error).__name__)


async def end_now(job: str, ending: Ending) -> Outcome:
    """End a response by what its job has told, be that nothing."""
    events = await dispatch.get_dispatcher().history(job) or [LOST_EVENT]
    return await run_in_thread(partial(ending.write, events))
