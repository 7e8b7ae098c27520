"""POST /completion and /completions."""

from dataclasses import replace
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.text import Detokenize
from llamero.api.async_view import caller_of, json_response
from llamero.api.collect import collect
from llamero.api.generation import check_num_jobs, open_run, settle
from llamero.api.loading import stream_when_ready
from llamero.api.model_choice import GENERATIVE
from llamero.api.native.completion_answer import CompletionAnswer, CompletionRecipe
from llamero.api.native.completion_request import CompletionSerializer, read_completion_request
from llamero.api.native.view import NativeView
from llamero.api.prompts import PromptText, tokenize_prompts
from llamero.api.questions import ask_text
from llamero.api.resuming import make_keep, read_run_id, stream_answer


class CompletionView(NativeView):
    """Continue prompts as llama-server does, whole or as a stream."""

    serializer_class = CompletionSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = self.read_body(request)
        self.completion = read_completion_request(body)
        num_prompts, settings = len(self.completion.prompts), self.completion.settings
        check_num_jobs(num_prompts, settings)
        num_jobs = num_prompts * settings.num_choices
        self.run_id = read_run_id(request, settings, num_jobs)
        self.served = self.find_model(request, GENERATIVE, body)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Generate, when the model is loaded."""
        if not self.completion.settings.stream:
            return await self._generate(request)
        return await stream_when_ready(
            self.served.deployment,
            lambda: self._generate(request),
            is_native=True,
            run_id=self.run_id,
        )

    async def _generate(self, request: Request) -> HttpResponseBase:
        settings = await settle(self.served.deployment, self.completion.settings)
        completion = replace(self.completion, settings=settings)
        prompts = await tokenize_prompts(
            self.served.deployment, completion.prompts, "prompt", parse_special=True
        )
        texts = [
            await self._text_of(p, ids) for p, ids in zip(completion.prompts, prompts, strict=True)
        ]
        answer = CompletionAnswer(
            self.served.id, completion, tuple(texts), tuple(len(ids) for ids in prompts)
        )
        num_jobs = len(prompts) * settings.num_choices
        recipe = CompletionRecipe(answer=answer, num_jobs=num_jobs)
        caller = caller_of(request)
        keep = make_keep(self.run_id, self.served, caller, recipe)
        run = await open_run(
            served=self.served,
            prompts=prompts,
            settings=settings,
            caller=caller,
            keep=keep,
        )
        if settings.stream:
            return await stream_answer(run, recipe, self.run_id)
        documents = [answer.whole(choice) for choice in await collect(run, num_jobs)]
        return json_response(documents[0] if num_jobs == 1 else documents)

    async def _text_of(self, source: PromptText, ids: tuple[int, ...]) -> str:
        """Give a prompt as text: as it was sent, or from its ids."""
        if source.is_text:
            return str(source.parts[0])
        return (await ask_text(self.served.deployment, Detokenize(tokens=ids))).text
