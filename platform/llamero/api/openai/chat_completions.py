"""POST /v1/chat/completions."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.chat import open_chat, prepare_chat
from llamero.api.collect import Choice, collect, timings_object, usage_object
from llamero.api.json_body import read_json_object
from llamero.api.loading import stream_when_ready
from llamero.api.model_choice import GENERATIVE, named_model
from llamero.api.native.verbose import describe_verbosely
from llamero.api.openai.chat_request import ChatSerializer, read_chat_request
from llamero.api.openai.envelope import Envelope, make_envelope
from llamero.api.openai.extras import wanted_extras
from llamero.api.openai.logprobs import chat_logprobs, prompt_logprobs
from llamero.api.openai.recipes import ChatRecipe
from llamero.api.openai.turns import TurnShape, message_of
from llamero.api.paths import Dialect
from llamero.api.resuming import make_keep, read_run_id, stream_answer
from llamero.api.sse import native_error, openai_error
from models_registry.selectors import ServedModel


class ChatCompletionsView(AsyncAPIView):
    """Answer a conversation, whole or as a stream."""

    serializer_class = ChatSerializer

    @property
    def is_native(self) -> bool:
        """Whether it speaks llama-server's words."""
        return self.dialect is Dialect.LLAMA_SERVER

    def prepare(self, request: Request) -> None:
        """Find the model and validate the body."""
        body = read_json_object(request._request)
        self.served = self.find_served(request, body)
        self.chat = read_chat_request(
            body, self.served.request_defaults, goes_on_with_answers=self.is_native
        )
        settings = self.chat.settings
        self.run_id = read_run_id(request, settings, settings.num_choices)
        self.waits_at = self.served.deployment

    def find_served(self, request: Request, body: dict[str, Any]) -> ServedModel:
        """Find the model, which must be named."""
        model = named_model(self.kwargs, body.get("model"))
        return self.choose_model(model, GENERATIVE)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Generate, when the model is loaded."""
        if not self.chat.settings.stream:
            return await self._generate(request)
        return await stream_when_ready(
            self.served.deployment,
            lambda: self._generate(request),
            fail=native_error if self.is_native else openai_error,
            run_id=self.run_id,
        )

    async def _generate(self, request: Request) -> HttpResponseBase:
        settings = self.chat.settings
        caller, envelope = caller_of(request), make_envelope("chatcmpl", self.served)
        chat = await prepare_chat(served=self.served, request=self.chat)
        recipe = ChatRecipe(
            envelope=envelope,
            num_choices=settings.num_choices,
            include_usage=self.chat.include_usage,
            shape=TurnShape(
                turn=chat.turn,
                is_legacy=self.chat.is_legacy,
                is_native=self.is_native,
            ),
            extras=wanted_extras(settings, [chat.prompt]),
        )
        keep = make_keep(self.run_id, self.served, caller, recipe)
        run = await open_chat(chat=chat, caller=caller, keep=keep)
        if settings.stream:
            return await stream_answer(run, recipe, self.run_id, caller, settings.pacing)
        choices = await collect(run, settings.num_choices, chat.turn)
        has_logprobs = settings.num_logprobs is not None
        document = _completion(envelope, choices, recipe.shape, has_logprobs=has_logprobs)
        if settings.num_prompt_logprobs is not None:
            document["prompt_logprobs"] = prompt_logprobs(choices[0].prompt_logprobs)
        if settings.is_verbose:
            document["__verbose"] = await describe_verbosely(
                self.served, chat.settings, chat.text, choices[0]
            )
        return json_response(document)


def _completion(
    envelope: Envelope, choices: list[Choice], shape: TurnShape, *, has_logprobs: bool
) -> dict[str, Any]:
    return envelope.document("chat.completion") | {
        "choices": [
            {
                "index": choice.index,
                "message": message_of(choice, shape),
                "logprobs": chat_logprobs(choice.logprobs) if has_logprobs else None,
                "finish_reason": shape.finish_reason(choice.finish_reason),
            }
            for choice in choices
        ],
        "usage": usage_object([choice.done for choice in choices], len(choices)),
        "timings": timings_object(choices[0].done),
    }
