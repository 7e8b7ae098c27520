"""POST /v1/completions: text on from a prompt, or from several."""

from functools import reduce
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.events import TokenLogprob
from inference.protocol.text import Detokenize
from llamero import dispatch
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.collect import Choice, collect, timings_object, usage_object
from llamero.api.generation import Prompt, check_num_jobs, open_run
from llamero.api.infill import Gap, check_infill, lay_out, read_gap
from llamero.api.json_body import read_json_object
from llamero.api.loading import stream_when_ready
from llamero.api.model_choice import GENERATIVE, named_model
from llamero.api.native.verbose import describe_verbosely
from llamero.api.openai.completion_request import CompletionSerializer, read_completion_request
from llamero.api.openai.envelope import make_envelope
from llamero.api.openai.extras import wanted_extras
from llamero.api.openai.logprobs import LegacyLogprobs, join_legacy, prompt_logprobs
from llamero.api.openai.recipes import TextRecipe
from llamero.api.prompts import PromptText, tokenize_prompts
from llamero.api.questions import ask_text
from llamero.api.resuming import make_keep, read_run_id, stream_answer
from llamero.api.sse import openai_error


class CompletionsView(AsyncAPIView):
    """Continue prompts, whole or as a stream."""

    serializer_class = CompletionSerializer

    def prepare(self, request: Request) -> None:
        """Find the model and validate the body."""
        body = read_json_object(request._request)
        model = named_model(self.kwargs, body.get("model"))
        self.served = self.choose_model(model, GENERATIVE)
        self.completion = read_completion_request(body, self.served.request_defaults)
        num_prompts, settings = len(self.completion.prompts), self.completion.settings
        check_num_jobs(num_prompts, settings)
        num_jobs = num_prompts * settings.num_choices
        self.run_id = read_run_id(request, settings, num_jobs)
        self.waits_at = self.served.deployment

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Generate, when the model is loaded."""
        if not self.completion.settings.stream:
            return await self._generate(request)
        return await stream_when_ready(
            self.served.deployment,
            lambda: self._generate(request),
            fail=openai_error,
            run_id=self.run_id,
        )

    async def _generate(self, request: Request) -> HttpResponseBase:
        completion = self.completion
        prompts = await self._make_prompts()
        echoes = await self._read_echoes(completion.prompts, prompts) if completion.echo else ()
        envelope, num_tried = make_envelope("cmpl", self.served), completion.settings.num_choices
        recipe = TextRecipe(
            envelope=envelope,
            echoes=echoes,
            num_prompts=len(prompts),
            num_choices=num_tried,
            num_logprobs=completion.num_logprobs,
            include_usage=completion.include_usage,
            extras=wanted_extras(completion.settings, prompts),
        )
        caller = caller_of(request)
        keep = make_keep(self.run_id, self.served, caller, recipe)
        run = await open_run(
            served=self.served,
            prompts=prompts,
            settings=completion.settings,
            caller=caller,
            keep=keep,
        )
        if completion.settings.stream:
            pacing = completion.settings.pacing
            return await stream_answer(run, recipe, self.run_id, caller, pacing)
        tried = await collect(run, len(prompts) * num_tried)
        document = envelope.document("text_completion") | self._describe(tried, echoes)
        if completion.settings.is_verbose:
            prompt = await self._spell(completion.prompts[0], prompts[0])
            document["__verbose"] = await describe_verbosely(
                self.served, completion.settings, prompt, tried[0]
            )
        return json_response(document)

    def _describe(self, tried: list[Choice], echoes: tuple[str, ...]) -> dict[str, Any]:
        """Give the choices to return of those that were tried, and what all of them took."""
        num_tried, choices = self.completion.settings.num_choices, []
        for index, choice in enumerate(_keep_best(tried, num_tried, self.completion.num_returned)):
            prompt = choice.index // num_tried
            judged = tried[prompt * num_tried].prompt_logprobs
            choices.append(self._choice(index, choice, echoes[prompt] if echoes else None, judged))
        return {
            "choices": choices,
            "usage": usage_object([choice.done for choice in tried], num_tried),
            "timings": timings_object(tried[0].done),
        }

    async def _make_prompts(self) -> list[Prompt]:
        """Tokenize the prompts; each stands before a gap where there is a suffix."""
        completion, deployment = self.completion, self.served.deployment
        if not completion.suffix:
            return await tokenize_prompts(
                deployment, completion.prompts, "prompt", parse_special=True
            )
        facts = await dispatch.get_dispatcher().facts(deployment)
        check_infill(facts, status=400, param="suffix")
        gaps = (
            Gap(before=str(prompt.parts[0]), behind=completion.suffix)
            for prompt in completion.prompts
        )
        return [lay_out(await read_gap(deployment, gap, facts, "prompt"), facts) for gap in gaps]

    def _choice(
        self, index: int, choice: Choice, echo: str | None, judged: list[TokenLogprob]
    ) -> dict[str, Any]:
        """Give one choice; ``judged`` are the tokens of its prompt, ``echo`` its repeated text."""
        completion, logprobs = self.completion, None
        if completion.num_logprobs is not None:
            builder = LegacyLogprobs()
            told = [] if echo is None else [builder.echo(judged, echo, completion.num_logprobs)]
            logprobs = reduce(join_legacy, [*told, builder.take(choice.logprobs)])
        described = {
            "text": (echo or "") + choice.text,
            "index": index,
            "logprobs": logprobs,
            "finish_reason": choice.finish_reason,
        }
        if completion.has_prompt_logprobs:
            described["prompt_logprobs"] = prompt_logprobs(judged)
        return described

    async def _read_echoes(
        self, sources: list[PromptText], prompts: list[tuple[int, ...]]
    ) -> tuple[str, ...]:
        """Give each prompt as text."""
        return tuple([await self._spell(*pair) for pair in zip(sources, prompts, strict=True)])

    async def _spell(self, source: PromptText, prompt: Prompt) -> str:
        """Give a prompt as it was sent, or from its ids."""
        if source.is_text:
            return str(source.parts[0])
        return (await ask_text(self.served.deployment, Detokenize(tokens=prompt))).text


def _keep_best(tried: list[Choice], num_tried: int, num_returned: int) -> list[Choice]:
    """Keep the likeliest of each prompt's choices, in their order where all are kept."""
    if num_tried == num_returned:
        return tried
    kept = []
    for start in range(0, len(tried), num_tried):
        group = sorted(tried[start : start + num_tried], key=lambda c: c.mean_logprob, reverse=True)
        kept += group[:num_returned]
    return kept
