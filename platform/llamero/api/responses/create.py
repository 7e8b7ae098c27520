"""POST /v1/responses and /v1/responses/input_tokens: a turn is generated, or counted."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.events import Event, Failed, Tokens
from inference.protocol.jobs import GenerationJob
from llamero.accounts.scopes import Scope
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.chat import ChatRequest, PreparedChat, prepare_chat
from llamero.api.generation import Keep, open_run
from llamero.api.json_body import read_json_object
from llamero.api.loading import stream_when_ready
from llamero.api.model_choice import GENERATIVE, named_model
from llamero.api.openai.extras import wanted_extras
from llamero.api.responses.contents import Outcome, Question, make_outcome
from llamero.api.responses.document import Document, make_draft
from llamero.api.responses.earlier_items import EarlierItems
from llamero.api.responses.fitting import prepare_fitting_chat
from llamero.api.responses.ids import make_response_id
from llamero.api.responses.messages import make_messages
from llamero.api.responses.recording import RecordedRun, read_to_end
from llamero.api.responses.request import (
    PromptFields,
    ResponseFields,
    Turn,
    read_request,
    read_turn,
)
from llamero.api.responses.settling import Ending
from llamero.api.responses.stored import tell_again
from llamero.api.responses.writer import KeptResponse, ResponseRecipe, error_event
from llamero.api.resuming import (
    IDEMPOTENCY_HEADER,
    RESUMABLE_HEADER,
    make_keep,
    retell_response,
    wants_resuming,
)
from llamero.api.run import GenerationRun
from llamero.api.run_names import is_run_id, make_run_id
from llamero.api.sse import stream_kept_run, stream_run
from llamero.api.threads import run_in_thread
from llamero.conversations.packing import pack
from llamero.conversations.services import keep_response
from llamero.errors import InvalidValue


class TurnView(AsyncAPIView):
    """What both have in common: a model, and a conversation with one more turn."""

    scope = Scope.RESPONSES

    def find_model(self, request: Request, body: dict[str, Any]) -> None:
        """Find the model."""
        model = named_model(self.kwargs, body.get("model"))
        self.served = self.choose_model(model, GENERATIVE)

    def read_conversation(self, request: Request, turn: Turn) -> None:
        """Read what came before, and make the chat that the model gets."""
        earlier = EarlierItems(caller_of(request))
        before = earlier.read_conversation(turn.previous) if turn.previous else []
        self.items = earlier.resolve(turn.items)
        paths = [f"input[{i}]" for i in range(len(self.items))]
        messages = make_messages(
            turn.instructions,
            before + self.items,
            ["previous_response_id"] * len(before) + paths,
        )
        if not messages:
            raise InvalidValue("input", "input must not be empty.")
        self.chat = ChatRequest(
            messages=messages,
            settings=turn.settings,
            template_kwargs={},
            tools=turn.tools.use,
            reasoning=turn.reasoning,
        )


class InputTokensView(TurnView):
    """Count the tokens of a prompt."""

    serializer_class = PromptFields

    def prepare(self, request: Request) -> None:
        """Validate the body and find what it speaks of."""
        body = read_json_object(request._request)
        turn = read_turn(body, make_response_id())
        self.find_model(request, body)
        self.read_conversation(request, turn)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Count."""
        chat = await prepare_chat(served=self.served, request=self.chat)
        return json_response({"object": "response.input_tokens", "input_tokens": len(chat.prompt)})


class ResponsesView(TurnView):
    """Answer a turn: whole, as a stream, or later."""

    serializer_class = ResponseFields
    is_begun = False

    def prepare(self, request: Request) -> None:
        """Find the model, validate the body, find the conversation."""
        body = read_json_object(request._request)
        self.response_id = make_response_id()
        self.find_model(request, body)
        self.asked = read_request(body, self.response_id, self.served.request_defaults)
        self.is_durable = self._is_resumable(request) or self.asked.is_background
        self.run_id = self._read_run_id(request)
        self.waits_at = self.served.deployment
        self.read_conversation(request, self.asked.turn)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Generate, when the model is loaded."""
        if not self.chat.settings.stream:
            return await self._generate(request)
        return await stream_when_ready(
            self.served.deployment, lambda: self._generate(request), fail=error_event
        )

    async def name_stream(self, response: StreamingHttpResponse) -> str | None:
        """Give the response's own id, once it is stored; of one that is not, that of its run."""
        return self.run_id or self.response_id if self.is_begun else None

    async def tell_again(self, name: str) -> HttpResponseBase:
        """Tell its events from the first on."""
        caller = caller_of(self.request)
        if is_run_id(name):
            return await retell_response(name, caller)
        return await tell_again(name, caller)

    def _is_resumable(self, request: Request) -> bool:
        """Whether a stored stream is to outlive its connection."""
        is_storable = self.asked.is_stored and self.asked.turn.settings.stream
        if wants_resuming(request):
            if not is_storable:
                message = f"A stream with {RESUMABLE_HEADER} needs stream: true and store: true."
                raise InvalidValue(RESUMABLE_HEADER, message)
            return True
        return is_storable and IDEMPOTENCY_HEADER in request.headers

    def _read_run_id(self, request: Request) -> str | None:
        """Give the id of a stream that is repeated by its key alone, as it is not stored."""
        is_repeated = self.asked.turn.settings.stream and IDEMPOTENCY_HEADER in request.headers
        return make_run_id() if is_repeated and not self.asked.is_stored else None

    async def _generate(self, request: Request) -> HttpResponseBase:
        chat = await prepare_fitting_chat(
            served=self.served, request=self.chat, is_truncated=self.asked.turn.is_truncated
        )
        self.recipe = ResponseRecipe(
            draft=make_draft(self.response_id, self.served.id, self.asked.echo),
            turn=chat.turn,
            extras=wanted_extras(chat.settings, [chat.prompt]),
        )
        if self.is_durable:
            return await self._begin_durable(request, chat)
        keep = make_keep(self.run_id, chat.served, caller_of(request), KeptResponse(self.recipe))
        run = await self._open(request, chat, keep)
        if chat.settings.stream:
            source = RecordedRun(run, self._keep_streamed) if self.asked.is_stored else run
            if keep is None:
                return await stream_run(source, self.recipe.make_writer())
            self.is_begun = True
            return await stream_kept_run(source, self.recipe.make_writer(), None)
        events = await read_to_end(run)
        return json_response(await run_in_thread(partial(self._conclude, events)))

    async def _begin_durable(self, request: Request, chat: PreparedChat) -> HttpResponseBase:
        """Start what goes on without its client; it is known to the database before the client.

        One that could not be stored does not go on. If this process dies in between, a job ends
        that nobody knows of.
        """
        jobs: list[GenerationJob] = []

        async def note(made: Sequence[GenerationJob]) -> None:
            jobs.extend(made)

        run = await self._open(request, chat, note)
        try:
            await run_in_thread(partial(self._store, job=jobs[0].id))
            self.is_begun = True
        except BaseException:
            await run.cancel()
            await run.close()
            raise
        if not chat.settings.stream:
            await run.close()
            return json_response(self.recipe.draft | {"status": "queued"})
        writer = self.recipe.make_writer()
        ending = Ending(self.response_id, caller_of(request).owner, self.recipe)
        source = RecordedRun(run, partial(ending.keep, writer))
        return await stream_kept_run(source, writer, None)

    async def _open(self, request: Request, chat: PreparedChat, keep: Keep | None) -> GenerationRun:
        """Start the job; one that is kept is durable."""
        return await open_run(
            served=chat.served,
            prompts=[chat.prompt],
            param="input",
            settings=chat.settings,
            caller=caller_of(request),
            keep=keep,
        )

    async def _keep_streamed(self, events: list[Event]) -> None:
        """Store what was streamed; one that failed before its first token was never seen."""
        has_failed = type(events[-1]) is Failed
        if not has_failed or any(type(event) is Tokens for event in events):
            await run_in_thread(partial(self._conclude, events))

    def _conclude(self, events: list[Event]) -> Document:
        outcome = make_outcome(self.recipe, events, is_retold=False)
        if self.asked.is_stored:
            self._store(outcome=outcome)
        return outcome.document

    def _store(self, *, job: str = "", outcome: Outcome | None = None) -> None:
        """Store the response, as it ended where it has."""
        ended: dict[str, Any] = {}
        if outcome is not None:
            ended = {"state": outcome.state, "outcome": pack(outcome)}
        keep_response(
            response_id=self.response_id,
            caller=caller_of(self.request),
            model_pk=self.served.model_pk,
            previous=self.asked.turn.previous,
            question=pack(Question(input=self.items, recipe=self.recipe)),
            is_background=self.asked.is_background,
            job=job,
            **ended,
        )
