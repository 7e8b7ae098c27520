"""From prompts to a running generation: limits checked first, then one job per choice.

HTTP views and the WebSocket share this: what may be asked and what it costs is decided here.
"""

import dataclasses
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import product

import msgspec

from inference.protocol.jobs import GenerationJob, ReasoningMarks
from inference.protocol.replicas import ModelFacts
from inference.protocol.sampling import SamplingParams
from llamero import dispatch
from llamero.accounts.selectors import Caller
from llamero.api.adapters import AdapterChoice, resolve_adapters
from llamero.api.guesses import NO_LIMITS, GuessLimits
from llamero.api.logit_bias import TextBiases, check_biases, find_tokens
from llamero.api.pacing import AS_USUAL, Pacing
from llamero.api.plugins import check_plugins
from llamero.api.run import GenerationRun, SettledStream
from llamero.api.sampling import sampling_of_choice
from llamero.api.sharing import salt_of
from llamero.api.submission import measure_jobs, submit_jobs
from llamero.errors import InvalidValue, LlameroError
from llamero.limits.metering import admit
from models_registry.selectors import ServedModel

MAX_JOBS = 128
MAX_SHIFTED_TOKENS = 1 << 20
"""What one answer may hold where the context shifts: its deadline comes long before."""
Prompt = tuple[int, ...]
Keep = Callable[[Sequence[GenerationJob]], Awaitable[None]]
"""Makes a run resumable: is told its jobs, which are durable, before they are submitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """How each choice of a request is generated. ``max_tokens`` None: until the context is full.

    ``text_biases`` wait for the model to tell which tokens they mean: see ``settle``.
    ``warms_cache`` has the prompt computed even for an answer without tokens. ``is_verbose`` adds
    llama-server's document to an answer of OpenAI's.
    """

    sampling: SamplingParams
    text_biases: TextBiases = ()
    max_tokens: int | None = None
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    num_logprobs: int | None = None
    post_sampling_probs: bool = False
    num_prompt_logprobs: int | None = None
    cache_prompt: bool = True
    num_keep: int = 0
    num_discard: int = 0
    min_indent: int = 0
    line_limit_ms: int = 0
    tells_timings: bool = False
    warms_cache: bool = False
    is_verbose: bool = False
    pacing: Pacing = AS_USUAL
    guesses: GuessLimits = NO_LIMITS
    adapters: AdapterChoice | None = None
    reasoning: ReasoningMarks | None = None
    stream: bool = False
    num_choices: int = 1

    @property
    def is_without_work(self) -> bool:
        """Whether there is nothing to compute."""
        is_judged = self.num_prompt_logprobs is not None
        return self.max_tokens == 0 and not (is_judged or self.warms_cache)

    @property
    def is_timed(self) -> bool:
        """Whether a stream tells its pace."""
        return self.stream and (self.tells_timings or self.pacing.tells_progress)


async def open_run(
    *,
    served: ServedModel,
    prompts: Sequence[Prompt],
    settings: GenerationSettings,
    caller: Caller,
    param: str = "prompt",
    keep: Keep | None = None,
) -> GenerationRun:
    """Start every choice of every prompt; either all are submitted or none is left behind.

    ``param`` is the field that the prompts come from.
    """
    check_num_jobs(len(prompts), settings)
    dispatcher = dispatch.get_dispatcher()
    facts = await dispatcher.facts(served.deployment)
    settings = await settle(served.deployment, settings)
    check_biases(settings.sampling, facts.num_vocab)
    check_plugins(settings.sampling.plugins, facts)
    for prompt in prompts:
        check_room(prompt, settings, facts, param)
    maker = _JobMaker(served, settings, caller, dispatcher.gateway_id, facts, keep is not None)
    wanted = product(prompts, range(settings.num_choices))
    if settings.is_without_work:
        await admit(caller)
        return GenerationRun([SettledStream(len(prompt)) for prompt, _ in wanted])
    jobs = [maker.make(prompt, choice) for prompt, choice in wanted]
    measured = await measure_jobs(jobs, served=served, caller=caller, room_of=maker.room_of)
    if keep is not None:
        await keep(measured.jobs)
    ends_at = caller.ends_at if settings.stream else None
    streams = await submit_jobs(measured, served, caller, ends_at)
    return GenerationRun(streams, is_durable=keep is not None)


async def settle(deployment: str, settings: GenerationSettings) -> GenerationSettings:
    """Give the settings in effect: biases on texts become biases on tokens."""
    if not settings.text_biases:
        return settings
    found = await find_tokens(deployment, settings.text_biases)
    biases = settings.sampling.logit_bias + found
    sampling = msgspec.structs.replace(settings.sampling, logit_bias=biases)
    return dataclasses.replace(settings, sampling=sampling, text_biases=())


def check_num_jobs(num_prompts: int, settings: GenerationSettings) -> None:
    """Refuse a request that is too many; best before its prompts become tokens."""
    if num_prompts * settings.num_choices > MAX_JOBS:
        param = "prompt" if num_prompts > MAX_JOBS else "n"
        raise InvalidValue(param, f"A request may have at most {MAX_JOBS} prompts times choices.")


def check_room(prompt: Prompt, settings: GenerationSettings, facts: ModelFacts, param: str) -> None:
    """Refuse a prompt that leaves no room for an answer."""
    needed = 0 if settings.is_without_work else 1
    if len(prompt) + needed > facts.context_length:
        raise context_exceeded(len(prompt), facts.context_length, param)


def context_exceeded(num_prompt_tokens: int, context_length: int, param: str) -> LlameroError:
    """Say how much too long a prompt is, also in the words that clients look for."""
    return LlameroError(
        400,
        "context_length_exceeded",
        "The prompt exceeds the available context size: the model's maximum context length is "
        f"{context_length} tokens, the prompt alone has {num_prompt_tokens}. Shorten it; an answer "
        "needs room too.",
        param=param,
        extra={"n_prompt_tokens": num_prompt_tokens, "n_ctx": context_length},
    )


@dataclass(frozen=True, slots=True)
class _JobMaker:
    """Makes the jobs of one request, alike but for prompt, seed and id."""

    served: ServedModel
    settings: GenerationSettings
    caller: Caller
    gateway: str
    facts: ModelFacts
    is_durable: bool

    def room_for(self, prompt: Prompt) -> int:
        """Tell how long an answer may be; one token more than the context can hold.

        That one tells the engine that the context is what ends the answer.
        """
        if self.served.profile.is_context_shifting:
            return MAX_SHIFTED_TOKENS
        return self.facts.context_length - len(prompt) + 1

    def room_of(self, job: GenerationJob) -> int:
        """Tell the same of a job."""
        return self.room_for(job.prompt_tokens)

    def make(self, prompt: Prompt, choice: int) -> GenerationJob:
        """Make the job of one choice, its budget cut to what the context can hold."""
        settings, room = self.settings, self.room_for(prompt)
        # One choice's word on the prompt serves all, unless they stream side by side.
        has_prompt_logprobs = choice == 0 or settings.stream
        return GenerationJob(
            id=secrets.token_hex(12),
            deployment=self.served.deployment,
            owner=self.caller.owner,
            salt=salt_of(self.caller, self.served.profile.prefix_sharing),
            gateway=self.gateway,
            prompt_tokens=prompt,
            deadline=time.time() + self.served.profile.job_timeout_seconds,
            sampling=sampling_of_choice(settings.sampling, choice),
            max_tokens=settings.max_tokens and min(room, settings.max_tokens),
            min_tokens=min(room, settings.min_tokens),
            stop=settings.stop,
            ignore_eos=settings.ignore_eos,
            num_logprobs=settings.num_logprobs,
            post_sampling_probs=settings.post_sampling_probs,
            num_prompt_logprobs=settings.num_prompt_logprobs if has_prompt_logprobs else None,
            cache_prompt=settings.cache_prompt,
            num_keep=settings.num_keep,
            num_discard=settings.num_discard,
            min_indent=settings.min_indent,
            line_limit_ms=settings.line_limit_ms,
            is_timed=settings.is_timed,
            num_draft_tokens=settings.guesses.most,
            min_draft_tokens=settings.guesses.least,
            min_draft_likely=settings.guesses.likely,
            loras=resolve_adapters(settings.adapters, self.facts.adapters),
            reasoning=settings.reasoning,
            stream=settings.stream,
            is_durable=self.is_durable,
            priority=self.caller.priority,
        )
