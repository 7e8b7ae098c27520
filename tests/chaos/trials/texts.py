"""What a real model writes survives kills: to the letter where a deployment is deterministic."""

import time
from itertools import chain

from inference.protocol.events import Done, Event, PromptLogprobs, TokenLogprob, Tokens
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ReplicaSpec, RuntimeProfile
from inference.protocol.sampling import SamplingParams
from tests.chaos.lab import NAMES, Lab, num_starts, open_lab
from tests.chaos.tally import Tally
from tests.chaos.trial import Size, Trial
from tests.inference.worker.replicas import make_job, make_spec
from tests.models import fetch_smollm2

NUM_STREAMS = 8
NUM_TOKENS = 64
START_TOKENS = 12
# SmolLM2's tokens of "The river had risen in the night, and",
# "Dear Sir, I am writing to you about",
# "To bake a loaf of bread you need" and "In the year 1870 the city of".
PROMPTS = (
    (504, 4626, 761, 20367, 281, 260, 3163, 28, 284),
    (35097, 8957, 28, 339, 744, 2385, 288, 346, 563),
    (2068, 26975, 253, 42126, 282, 6956, 346, 737),
    (788, 260, 713, 216, 33, 40, 39, 32, 260, 2240, 282),
)
# Batches of other shapes round otherwise, which can turn a choice between near equals; a token
# that was lost, or came twice, is far less likely than the best one.
NEAR = 0.5
FAR_SHARE = 0.02
# Ends of text, which the streams are told to ignore.
ENDS = (0, 2)


def _make_specs(*, is_deterministic: bool) -> list[ReplicaSpec]:
    profile = RuntimeProfile(
        context_length=512, num_slots=4, num_threads=1, is_deterministic=is_deterministic
    )
    path = str(fetch_smollm2())
    return [make_spec(name, profile=profile, files=(path,)) for name in NAMES]


def _make_jobs(number: int, *, is_greedy: bool) -> list[GenerationJob]:
    """Give streams over real words; half of them sample, with seeds, unless all are greedy."""
    jobs = []
    for stream in range(NUM_STREAMS):
        sampling = SamplingParams(temperature=0)
        if stream % 2 and not is_greedy:
            sampling = SamplingParams(temperature=0.9, seed=100 * number + stream)
        jobs.append(
            make_job(
                prompt_tokens=(*PROMPTS[stream % len(PROMPTS)], 500 + 10 * number + stream),
                max_tokens=NUM_TOKENS,
                sampling=sampling,
                ignore_eos=True,
                deadline=time.time() + 120,
            )
        )
    return jobs


async def keep_texts(tally: Tally, size: Size) -> None:
    """The text of a stream whose replica was killed is the text of the same stream, undisturbed."""
    async with open_lab(*_make_specs(is_deterministic=True)) as lab:
        for number in range(size.rounds):
            jobs = _make_jobs(number, is_greedy=False)
            await lab.client.submit(*jobs)
            alone = lab.wait_for_ends(jobs, 90)
            again = _make_jobs(number, is_greedy=False)
            struck = await _run_and_kill(lab, again, number)
            for job, other in zip(jobs, again, strict=True):
                is_same = _told(alone[job.id]) == _told(struck.get(other.id, []))
                tally.judge(is_same, "a text differs from the undisturbed one")
                tally.strike(num_starts(struck.get(other.id)) > 1)


async def continue_texts(tally: Tally, size: Size) -> None:
    """On an ordinary deployment each token of a greedy stream is one the model finds best there."""
    async with open_lab(*_make_specs(is_deterministic=False)) as lab:
        for number in range(size.rounds):
            jobs = _make_jobs(number, is_greedy=True)
            struck = await _run_and_kill(lab, jobs, number)
            for job in jobs:
                events = struck.get(job.id, [])
                tokens, text = _told(events)
                is_counted = len(tokens) == NUM_TOKENS == _count(events)
                tally.judge(is_counted and bool(text), f"{len(tokens)} tokens were told")
                tally.strike(num_starts(events) > 1)
            await _judge_likelihood(lab, jobs, struck, tally)


async def _run_and_kill(lab: Lab, jobs: list[GenerationJob], number: int) -> dict[str, list[Event]]:
    """Run streams and kill a replica while each of them has begun; gives their events."""
    await lab.client.submit(*jobs)

    def has_begun(job: GenerationJob) -> bool:
        return len(lab.client.events(job)) > START_TOKENS

    assert lab.wait(lambda: all(map(has_begun, jobs)), 60), "the streams did not begin"
    lab.kill_replica(NAMES[number % 2])
    found = lab.wait_for_ends(jobs, 90)
    lab.wait_until_ready()
    return found


async def _judge_likelihood(
    lab: Lab, jobs: list[GenerationJob], struck: dict[str, list[Event]], tally: Tally
) -> None:
    """Have the model judge what was told: nowhere is there anything much likelier."""
    judges = [
        make_job(
            prompt_tokens=(*job.prompt_tokens, *_told(struck.get(job.id, []))[0]),
            max_tokens=1,
            num_prompt_logprobs=1 + len(ENDS),
            deadline=time.time() + 120,
        )
        for job in jobs
    ]
    await lab.client.submit(*judges)
    found = lab.wait_for_ends(judges, 90)
    for job, judge in zip(jobs, judges, strict=True):
        parts = [one for one in found.get(judge.id, []) if isinstance(one, PromptLogprobs)]
        rows = list(chain.from_iterable(part.logprobs for part in parts))[len(job.prompt_tokens) :]
        far = [row for row in rows if _best(row) - row.chosen.logprob > NEAR]
        is_valid = len(rows) == NUM_TOKENS and len(far) <= FAR_SHARE * len(rows)
        tally.judge(is_valid, f"{len(far)} of {len(rows)} tokens are not what the model would say")


def _best(row: TokenLogprob) -> float:
    """Give the log-probability of the likeliest token that was to be had."""
    return max(one.logprob for one in row.top if one.id not in ENDS)


def _told(events: list[Event]) -> tuple[tuple[int, ...], str]:
    """Give the tokens and the text of a stream."""
    told = [event for event in events if isinstance(event, Tokens)]
    tokens = tuple(chain.from_iterable(event.token_ids for event in told))
    return tokens, "".join(event.text for event in told)


def _count(events: list[Event]) -> int:
    end = events[-1] if events else None
    return end.num_completion_tokens if isinstance(end, Done) else -1


TRIALS = (
    Trial("P1", "SmolLM2, deterministic: killed texts to the letter", keep_texts, 3),
    Trial("P1", "SmolLM2, ordinary: killed texts go on validly", continue_texts, 2),
)
