"""GET, DELETE /v1/responses/{id}, and its cancel and input_items: what was stored."""

import asyncio
from functools import partial
from time import monotonic
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.relay.endings import CANCELLED_EVENT
from inference.relay.history import LIVE_STATES
from llamero import dispatch
from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import Caller
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.responses.contents import Outcome, outcome_of
from llamero.api.responses.document import Document
from llamero.api.responses.listing import make_page
from llamero.api.responses.lookup import find_row, items_before
from llamero.api.responses.query import read_flag, read_page_query, read_starting_after
from llamero.api.responses.recording import RecordedRun, ToldStream
from llamero.api.responses.settling import Ending, end_now
from llamero.api.run import GenerationRun
from llamero.api.sse import stream_kept_run
from llamero.api.threads import run_in_thread
from llamero.conversations.models import StoredResponse
from llamero.conversations.services import delete_response
from llamero.errors import InvalidValue

# How long a cancelled job may take to say where it stopped.
CANCEL_SECONDS = 3.0
_LOOK_SECONDS = 0.05


async def tell_again(response_id: str, caller: Caller) -> HttpResponseBase:
    """Tell a response's events from the first on; raises LlameroError if there is none."""
    row = await run_in_thread(partial(find_row, response_id, caller))
    return await tell_events(row, Ending.of(row), outcome_of(row), caller)


async def tell_events(
    row: StoredResponse, ending: Ending, outcome: Outcome | None, caller: Caller, after: int = -1
) -> HttpResponseBase:
    """Tell a response again: from its job as long as that goes on, then from what was stored."""
    writer = ending.recipe.make_writer(after)
    if outcome is None:
        stream = await dispatch.get_dispatcher().attach(row.job, row.owner)
        if stream is not None:
            stream.reader_ends_at = caller.ends_at
            run = GenerationRun([stream], is_durable=True)
            source = RecordedRun(run, partial(ending.keep, writer))
            return await stream_kept_run(source, writer, None, is_resumed=True)
        outcome = await end_now(row.job, ending)
    writer.final = outcome.document
    told = GenerationRun([ToldStream(outcome.events)], is_durable=True)
    return await stream_kept_run(told, writer, None, is_resumed=True)


class StoredView(AsyncAPIView):
    """What all have in common: one response of the caller."""

    scope = Scope.RESPONSES

    def prepare(self, request: Request) -> None:
        """Find it, and read what is needed of it."""
        self.row = find_row(self.kwargs["response_id"], caller_of(request))
        self.ending = Ending.of(self.row)
        self.outcome = outcome_of(self.row)

    async def read_document(self) -> Document:
        """Give its document as it is now; one whose job has ended is ended."""
        if self.outcome is None:
            state = await dispatch.get_dispatcher().look(self.row.job)
            if state in LIVE_STATES:
                status = "queued" if state == "waiting" else "in_progress"
                return self.ending.recipe.draft | {"status": status}
            self.outcome = await end_now(self.row.job, self.ending)
        return self.outcome.document


class ResponseView(StoredView):
    """One response."""

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Give it as it is now, or, with ``stream=true``, its events after ``starting_after``."""
        if not read_flag(request, "stream"):
            return json_response(await self.read_document())
        after = read_starting_after(request)
        if not self.row.job:
            message = "Only a response with background: true can be streamed again."
            raise InvalidValue("stream", message)
        return await tell_events(self.row, self.ending, self.outcome, caller_of(request), after)

    async def delete(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Delete it; what still runs for it is stopped."""
        row = self.row
        await run_in_thread(partial(delete_response, response_id=row.id, owner=row.owner))
        if not row.is_ended:
            await dispatch.get_dispatcher().cancel_jobs([row.job])
        return json_response({"id": row.id, "object": "response", "deleted": True})


class CancelView(StoredView):
    """The end of a response that nobody needs any more."""

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Stop it where it is, and give what there was; one that has ended stays as it is."""
        if not self.row.job:
            message = "Only a response with background: true can be cancelled."
            raise InvalidValue("response_id", message)
        if self.outcome is None:
            await self._stop(self.row.job)
        return json_response(await self.read_document())

    async def _stop(self, job: str) -> None:
        dispatcher = dispatch.get_dispatcher()
        await dispatcher.cancel_jobs([job])
        ends = monotonic() + CANCEL_SECONDS
        while await dispatcher.look(job) == "running":
            if monotonic() > ends:
                # Its replica stands still. What it may still say comes too late.
                told = [*await dispatcher.history(job), CANCELLED_EVENT]
                self.outcome = await run_in_thread(partial(self.ending.write, told))
                return
            await asyncio.sleep(_LOOK_SECONDS)


class InputItemsView(StoredView):
    """The items that a response was made from."""

    def prepare(self, request: Request) -> None:
        """Find them."""
        super().prepare(request)
        self.page = make_page(items_before(self.row), read_page_query(request))

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """List one page of them."""
        return json_response(self.page)
