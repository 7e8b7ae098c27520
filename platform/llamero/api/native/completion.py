"""POST /completion and /completions."""

import asyncio
from dataclasses import replace
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.replicas import ModelFacts
from inference.protocol.text import Detokenize
from llamero import dispatch
from llamero.api.async_view import caller_of, json_response
from llamero.api.collect import collect
from llamero.api.defaults import with_defaults
from llamero.api.fields import validate
from llamero.api.generation import Prompt, check_num_jobs, open_run, settle
from llamero.api.loading import stream_when_ready
from llamero.api.model_choice import GENERATIVE
from llamero.api.native.completion_answer import CompletionAnswer
from llamero.api.native.completion_request import (
    CompletionRequest,
    CompletionSerializer,
    read_completion_request,
)
from llamero.api.native.completion_stream import CompletionRecipe
from llamero.api.native.generation_settings import model_side
from llamero.api.native.view import NativeView
from llamero.api.prompts import PromptText, read_native_prompts, tokenize_prompts
from llamero.api.questions import ask_text
from llamero.api.resuming import make_keep, read_run_id, stream_answer
from llamero.api.sse import native_error
from models_registry.selectors import ServedModel


class GeneratingView(NativeView):
    """Generates from prompts, and answers in llama-server's shape, whole or as a stream."""

    completion: CompletionRequest
    served: ServedModel
    run_id: str | None

    async def make_prompts(self, facts: ModelFacts) -> list[Prompt]:
        """Give the prompts as token ids."""
        raise NotImplementedError

    async def spell_prompts(self, prompts: list[Prompt], facts: ModelFacts) -> list[str]:
        """Give the prompts as text, with whatever tokens were added."""
        return list(await asyncio.gather(*map(self.spell, prompts)))

    async def spell(self, prompt: Prompt) -> str:
        """Give a prompt as text, control tokens included."""
        return (await ask_text(self.served.deployment, Detokenize(tokens=prompt))).text

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Generate, when the model is loaded."""
        if not self.completion.settings.stream:
            return await self._generate(request)
        return await stream_when_ready(
            self.served.deployment,
            lambda: self._generate(request),
            fail=native_error,
            run_id=self.run_id,
        )

    async def _generate(self, request: Request) -> HttpResponseBase:
        served, caller = self.served, caller_of(request)
        facts = await dispatch.get_dispatcher().facts(served.deployment)
        settings = await settle(served.deployment, self.completion.settings)
        prompts = await self.make_prompts(facts)
        answer = CompletionAnswer(
            model=served.id,
            request=replace(self.completion, settings=settings),
            prompts=tuple(await self.spell_prompts(prompts, facts)),
            num_prompt_tokens=tuple(len(ids) for ids in prompts),
            model_side=model_side(served, facts, settings),
        )
        num_jobs = len(prompts) * settings.num_choices
        recipe = CompletionRecipe(answer=answer, num_jobs=num_jobs)
        keep = make_keep(self.run_id, served, caller, recipe)
        run = await open_run(
            served=served, prompts=prompts, settings=settings, caller=caller, keep=keep
        )
        if settings.stream:
            return await stream_answer(run, recipe, self.run_id, caller, settings.pacing)
        documents = [answer.whole(choice) for choice in await collect(run, num_jobs)]
        return json_response(documents[0] if num_jobs == 1 else documents)


class CompletionView(GeneratingView):
    """Continue prompts as llama-server does."""

    serializer_class = CompletionSerializer
    sources: list[PromptText]

    def prepare(self, request: Request) -> None:
        """Find the model and validate the body."""
        body = self.read_body(request)
        self.served = self.find_model(request, GENERATIVE, body)
        fields = with_defaults(validate(CompletionSerializer, body), self.served.request_defaults)
        self.sources = read_native_prompts(fields["prompt"], "prompt")
        self.completion = read_completion_request(fields, body)
        settings = self.completion.settings
        check_num_jobs(len(self.sources), settings)
        self.run_id = read_run_id(request, settings, len(self.sources) * settings.num_choices)
        self.waits_at = self.served.deployment

    async def make_prompts(self, facts: ModelFacts) -> list[Prompt]:
        """Tokenize the prompts."""
        return await tokenize_prompts(
            self.served.deployment, self.sources, "prompt", parse_special=True
        )

    async def spell_prompts(self, prompts: list[Prompt], facts: ModelFacts) -> list[str]:
        """Give each as it was sent where nothing was added to it."""
        if facts.num_prefix_tokens or facts.num_suffix_tokens:
            return await super().spell_prompts(prompts, facts)
        return [
            str(source.parts[0]) if source.is_text else await self.spell(prompt)
            for source, prompt in zip(self.sources, prompts, strict=True)
        ]
