"""Tenants beside tenants: nobody gets another's text, prefix or run, and each token is counted."""

import asyncio
import random
import time
from typing import Any

from inference.protocol.events import Done, Event
from inference.protocol.jobs import GenerationJob
from tests.chaos.lab import NAMES, Lab, is_whole, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import Answer, ask, get, make_body, make_prompt
from tests.chaos.trial import Size, Trial
from tests.gateways import Reader
from tests.inference.worker.replicas import make_job

NUM_TENANTS = 64
NUM_ASKED = 16
MAX_TOKENS = 120


async def keep_tenants_apart(tally: Tally, size: Size) -> None:
    """64 tenants with one common beginning of their prompts, who cancel at random.

    A round is a request of each. An answer depends on every token of its prompt, the tenant's own
    canary among them. What a tenant asks first finds nothing computed by others.
    """
    rng = random.Random(17)
    common = tuple(rng.randrange(10, 200) for _ in range(96))
    async with open_lab() as lab:
        for number in range(size.rounds):
            jobs = [_make_tenants_job(tenant, number, common) for tenant in range(NUM_TENANTS)]
            await lab.client.submit(*jobs)
            cancelled = rng.sample(jobs, NUM_TENANTS // 8) if number else []
            for job in cancelled:
                await lab.client.cancel(job)
            found = lab.wait_for_ends(jobs)
            for job in jobs:
                if job not in cancelled:
                    is_kept = is_whole(job, found.get(job.id))
                    tally.judge(is_kept, "an answer is not the tenant's own, or did not come")
            num_cached = [_num_cached(found.get(job.id)) for job in jobs]
            if number == 0:
                tally.judge(not any(num_cached), "a tenant was given what another computed")
            # Only tokens that their own tenant computed: of those there are some, or the test is
            # none of a cache.
            tally.strike(sum(map(bool, num_cached)))
        await _keep_runs_apart(lab, tally)


def _make_tenants_job(tenant: int, number: int, common: tuple[int, ...]) -> GenerationJob:
    canary = random.Random(1000 + tenant)
    own = tuple(canary.randrange(10, 200) for _ in range(16))
    name = f"tenant{tenant}"
    prompt = (*common, *own, 10 + number % 200, 10 + number // 200)
    return make_job(max_tokens=12, owner=name, salt=name, prompt_tokens=prompt)


def _num_cached(events: list[Event] | None) -> int:
    end = events[-1] if events else None
    return end.num_cached_tokens if isinstance(end, Done) else 0


async def _keep_runs_apart(lab: Lab, tally: Tally) -> None:
    """Another key's run looks like no run at all."""
    [gateway] = lab.start_gateways(1)
    assert lab.home is not None
    mine, strange = lab.home.key(), lab.home.key("other-key")
    for number in range(20):
        body = make_body(make_prompt(number), 5)
        del body["stream_options"]
        reader = Reader(mine, "/v1/completions", body)
        await asyncio.to_thread(reader.read, gateway.port)
        found = await get(gateway.port, f"/v1/runs/{reader.run}/events", strange)
        unknown = await get(gateway.port, f"/v1/runs/run_{'0' * 32}/events", strange)
        is_alike = (found.status, found.code, found.text) == (404, unknown.code, unknown.text)
        tally.judge(is_alike and reader.is_finished, f"another key's run is {found.status}")


async def count_every_token(tally: Tally, size: Size) -> None:
    """Replicas are killed under requests of every form: usage is what was told, each ends once.

    A round is a killed replica.
    """
    rng = random.Random(23)
    async with open_lab() as lab:
        [gateway] = lab.start_gateways(1)
        assert lab.home is not None
        for number in range(size.rounds):
            wanted = [_make_request(rng, 100 * number + one) for one in range(NUM_ASKED)]
            asked = [
                asyncio.create_task(ask(gateway.port, lab.home.key(), body)) for body in wanted
            ]
            await asyncio.sleep(0.4)
            lab.kill_replica(rng.choice(NAMES))
            tally.strike(sum(not one.done() for one in asked))
            for body, answer in zip(wanted, await asyncio.gather(*asked), strict=True):
                tally.judge(_is_counted(body, answer), f"usage {answer.usage} of {answer.status}")
            await asyncio.to_thread(lab.wait_until_ready)
        keys = await asyncio.to_thread(_wait_for_no_jobs, lab)
        tally.judge(not keys, f"{len(keys)} jobs are left that nobody waits for")


def _make_request(rng: random.Random, number: int) -> dict[str, Any]:
    body = make_body(make_prompt(number), rng.randrange(40, MAX_TOKENS), n=rng.choice((1, 1, 2)))
    if rng.random() < 0.4:
        del body["stream_options"]
        body["stream"] = False
    return body


def _is_counted(body: dict[str, Any], answer: Answer) -> bool:
    """Tell whether all that was asked came, and was counted: a letter is a token."""
    num_tokens, usage = body["max_tokens"] * body["n"], answer.usage
    return (
        answer.is_finished
        and len(answer.text) == num_tokens == usage["completion_tokens"]
        and usage["prompt_tokens"] == len(body["prompt"])
    )


def _wait_for_no_jobs(lab: Lab) -> list[bytes]:
    ends = time.monotonic() + 5
    while (keys := lab.redis.keys("lm:job:*")) and time.monotonic() < ends:
        time.sleep(0.1)
    return list(keys)


TRIALS = (
    Trial("P17", "64 tenants, cancels, one common prefix, foreign runs", keep_tenants_apart, 32),
    Trial("P23", "replicas killed: usage is what was told, one end each", count_every_token, 6),
)
