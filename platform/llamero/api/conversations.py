"""GET and DELETE /v1/stream, POST /v1/streams/lookup: streams by the names that clients chose."""

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.relay.conversations import Conversation
from llamero import dispatch
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.json_body import read_json_object
from llamero.api.resuming import find_kept_run, no_such_run, retell_run
from llamero.api.run_names import check_conversation
from llamero.errors import InvalidValue, LlameroError

MAX_LOOKED_UP = 64
_MAX_DIGITS = 12


class ConversationStreamView(AsyncAPIView):
    """The last stream of a conversation."""

    def prepare(self, request: Request) -> None:
        """Read which one."""
        self.conversation = check_conversation(request.query_params.get("conv_id", ""), "conv_id")

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Tell it after ``Last-Event-ID``, else after the first ``?from=`` bytes of it."""
        caller = caller_of(request)
        run = (await self._find(caller.owner)).run
        place = request.headers.get("Last-Event-ID")
        if place is not None:
            return await retell_run(run, caller, place)
        return await retell_run(run, caller, num_skipped=_read_offset(request))

    async def delete(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Stop it and forget it; safe to repeat."""
        caller, dispatcher = caller_of(request), dispatch.get_dispatcher()
        try:
            kept = await find_kept_run((await self._find(caller.owner)).run, caller)
        except LlameroError as error:
            if error.status != 404:
                raise
        else:
            await dispatcher.cancel_jobs(kept.jobs)
            await dispatcher.conversations.forget(self.conversation, caller.owner)
        return HttpResponse(status=204)

    async def _find(self, owner: str) -> Conversation:
        found = await dispatch.get_dispatcher().conversations.find([self.conversation], owner)
        if not found:
            raise no_such_run()
        return found[0]


class ConversationLookupView(AsyncAPIView):
    """Which of some conversations have a stream; nobody can list them all."""

    def prepare(self, request: Request) -> None:
        """Read which ones."""
        ids = read_json_object(request._request).get("conversation_ids")
        if not isinstance(ids, list) or len(ids) > MAX_LOOKED_UP:
            message = f"conversation_ids must be a list of at most {MAX_LOOKED_UP} ids."
            raise InvalidValue("conversation_ids", message)
        self.ids = [
            check_conversation(one, f"conversation_ids[{at}]") for at, one in enumerate(ids)
        ]

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """List those of the caller that are known."""
        conversations = dispatch.get_dispatcher().conversations
        found = await conversations.find(self.ids, caller_of(request).owner) if self.ids else []
        return json_response(
            [
                {
                    "conversation_id": one.id,
                    "is_done": one.ended_at > 0,
                    "started_at": one.started_at,
                    "completed_at": one.ended_at,
                }
                for one in found
            ]
        )


def _read_offset(request: Request) -> int:
    text = request.query_params.get("from", "") or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise InvalidValue("from", "from must be a number of bytes.")
    return int(text)
