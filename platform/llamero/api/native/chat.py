"""llama-server's own addresses for chats: their answers, their prompts, and how long these are."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.api.async_view import json_response
from llamero.api.chat import prepare_chat
from llamero.api.model_choice import GENERATIVE
from llamero.api.native.view import NativeView
from llamero.api.openai.chat_completions import ChatCompletionsView
from llamero.api.openai.chat_request import ChatSerializer, read_chat_request
from llamero.api.paths import Dialect
from models_registry.selectors import ServedModel


class NativeChatView(NativeView, ChatCompletionsView):
    """POST /chat/completions: as OpenAI's, but the model need not be named."""

    def find_served(self, request: Request, body: dict[str, Any]) -> ServedModel:
        """Find the model, the first that fits where none is named."""
        return self.find_model(request, GENERATIVE, body)


class _ChatPromptView(NativeView):
    """Shows something of the prompt that a chat would have."""

    serializer_class = ChatSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = self.read_body(request)
        is_native = self.dialect is Dialect.LLAMA_SERVER
        self.chat = read_chat_request(body, goes_on_with_answers=is_native)
        self.served = self.find_model(request, GENERATIVE, body)


class ApplyTemplateView(_ChatPromptView):
    """POST /apply-template: the prompt itself, with tools as the model gets them."""

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Render."""
        prepared = await prepare_chat(served=self.served, request=self.chat)
        return json_response({"prompt": prepared.text})


class ChatTokensView(_ChatPromptView):
    """POST /chat/completions/input_tokens: how many tokens the prompt has."""

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Render and count."""
        prepared = await prepare_chat(served=self.served, request=self.chat)
        return json_response(
            {"object": "response.input_tokens", "input_tokens": len(prepared.prompt)}
        )
