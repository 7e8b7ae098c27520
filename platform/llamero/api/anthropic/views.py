"""POST /v1/messages and /v1/messages/count_tokens."""

import secrets
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.api.anthropic.collect import collect_message
from llamero.api.anthropic.events import error_event
from llamero.api.anthropic.recipe import MessageRecipe
from llamero.api.anthropic.request import (
    MessagesSerializer,
    PromptSerializer,
    read_messages_request,
    read_prompt_request,
)
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.chat import PreparedChat, open_chat, prepare_chat
from llamero.api.json_body import read_json_object
from llamero.api.loading import stream_when_ready
from llamero.api.model_choice import GENERATIVE, named_model
from llamero.api.paths import Dialect
from llamero.api.resuming import make_keep, read_run_id, stream_answer


class MessagesView(AsyncAPIView):
    """Answer a conversation, whole or as a stream."""

    dialect = Dialect.ANTHROPIC
    serializer_class = MessagesSerializer

    def prepare(self, request: Request) -> None:
        """Find the model and validate the body."""
        body = read_json_object(request._request)
        model = named_model(self.kwargs, body.get("model"))
        self.served = self.choose_model(model, GENERATIVE)
        self.wanted = read_messages_request(body, self.served.request_defaults)
        self.run_id = read_run_id(request, self.wanted.chat.settings, num_jobs=1)
        self.waits_at = self.served.deployment

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Generate, when the model is loaded."""
        if not self.wanted.chat.settings.stream:
            return await self._generate(request)
        return await stream_when_ready(
            self.served.deployment,
            lambda: self._generate(request),
            fail=error_event,
            run_id=self.run_id,
        )

    async def _generate(self, request: Request) -> HttpResponseBase:
        caller = caller_of(request)
        chat = await prepare_chat(served=self.served, request=self.wanted.chat)
        recipe = self._make_recipe(chat)
        keep = make_keep(self.run_id, self.served, caller, recipe)
        run = await open_chat(chat=chat, caller=caller, keep=keep)
        if chat.settings.stream:
            return await stream_answer(run, recipe, self.run_id, caller, chat.settings.pacing)
        return json_response(await collect_message(run, recipe))

    def _make_recipe(self, chat: PreparedChat) -> MessageRecipe:
        return MessageRecipe(
            id=f"msg_{secrets.token_hex(12)}",
            model=self.served.id,
            num_prompt_tokens=len(chat.prompt),
            max_tokens=chat.settings.max_tokens or 0,
            stop_sequences=self.wanted.chat.settings.stop,
            hides_thinking=self.wanted.hides_thinking,
            turn=chat.turn,
        )


class CountTokensView(AsyncAPIView):
    """Tell how long the prompt of a request would be."""

    dialect = Dialect.ANTHROPIC
    serializer_class = PromptSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = read_json_object(request._request)
        self.chat = read_prompt_request(body)
        model = named_model(self.kwargs, body.get("model"))
        self.served = self.choose_model(model, GENERATIVE)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Count."""
        chat = await prepare_chat(served=self.served, request=self.chat)
        return json_response({"input_tokens": len(chat.prompt)})
