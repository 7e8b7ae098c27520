"""What a request asks of its limits: measured before it is submitted, counted where it has no jobs.

What no limit could ever allow is refused here, in words that do not invite another try.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from django.template.defaultfilters import pluralize

from inference.relay.limits import LEAST_ANSWER, Counter, CounterKind, JobNeed, Meter, Stake
from llamero import dispatch
from llamero.accounts.callers import Caller
from llamero.errors import LlameroError
from llamero.limits.readings import note_readings
from llamero.limits.selectors import CallLimits, find_limits, name_subjects
from llamero.limits.words import name_limit, name_subject


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured request: the stakes of its jobs, and its meter, None where nothing counts it.

    No answer may have more tokens than ``longest_answer``, where that is told.
    """

    stakes: tuple[Stake, ...]
    meter: Meter | None = None
    longest_answer: int | None = None


async def measure(
    *, caller: Caller, model_pk: int, jobs: Sequence[JobNeed], seconds: float
) -> Measured:
    """Measure a request of several jobs; raises LlameroError for what will never fit."""
    limits = await find_limits(caller, model_pk)
    longest = _longest_answer(limits, jobs)
    if longest is not None:
        jobs = [job._replace(room=min(job.room, longest)) for job in jobs]
    subjects = name_subjects(caller, model_pk)
    stakes = tuple(Stake(job.prompt, _most_of(job), subjects) for job in jobs)
    if not limits.counters:
        return Measured(stakes, None, longest)
    for counter in limits.counters:
        least = _least_of(counter, jobs)
        if least > counter.bound:
            raise _never_fits(name_limit(counter), _tokens_of(jobs))
    meter = Meter(secrets.token_hex(8), limits.counters, tuple(jobs), seconds, LEAST_ANSWER)
    return Measured(stakes, meter, longest)


async def admit(caller: Caller) -> None:
    """Count a request that has no jobs; raises EngineError where it is one too many."""
    if caller.key_id is None and caller.user is None:
        return  # the operator's own, who reads metrics
    limits = await find_limits(caller)
    if limits.counters:
        meter = Meter(secrets.token_hex(8), limits.counters)
        note_readings(await dispatch.get_dispatcher().admit(meter))


def _longest_answer(limits: CallLimits, jobs: Sequence[JobNeed]) -> int | None:
    """Share what one request may take between its answers."""
    if limits.tokens_per_request is None:
        return None
    cap, subject = limits.tokens_per_request
    num_prompt_tokens = sum(job.prompt for job in jobs)
    has_bound = all(job.completion is not None for job in jobs)
    left = cap - num_prompt_tokens
    if left < (_tokens_of(jobs) - num_prompt_tokens if has_bound else len(jobs)):
        what = f"{cap} token{pluralize(cap)} per request for {name_subject(subject)}"
        raise _never_fits(what, _tokens_of(jobs))
    return None if has_bound else left // len(jobs)


def _tokens_of(jobs: Sequence[JobNeed]) -> int:
    """Count the tokens that a request asks for at least."""
    return sum(job.prompt + _least_answer(job) for job in jobs)


def _most_of(job: JobNeed) -> int:
    return max(0, job.room if job.completion is None else job.completion)


def _least_answer(job: JobNeed) -> int:
    return min(job.room, LEAST_ANSWER) if job.completion is None else job.completion


def _least_of(counter: Counter, jobs: Sequence[JobNeed]) -> int:
    """Give what a request weighs at least."""
    prompt = sum(job.prompt for job in jobs)
    completion = sum(map(_least_answer, jobs))
    match counter.kind:
        case CounterKind.TOKENS | CounterKind.SPENT_TOKENS:
            return prompt + completion
        case CounterKind.INPUT:
            return prompt
        case CounterKind.OUTPUT:
            return completion
        case CounterKind.MONEY:
            prices = counter.prices
            return prompt * max(prices.input, prices.cached) + completion * prices.output
    return 0


def _never_fits(limit: str, num_tokens: int) -> LlameroError:
    message = (
        f"This request is larger than its limit ever allows: {limit}. It asks for {num_tokens} "
        "tokens, of its prompt and for its answer. Shorten it, or set a smaller max_tokens."
    )
    return LlameroError(400, "request_exceeds_limit", message)
