"""Limits under hundreds of requests at once, at several gateways, with cancels and kills."""

import asyncio
import contextlib
import random
from collections import Counter

from inference.protocol.replicas import ReplicaState
from inference.relay.usage import UsageRecord, read_records
from tests.chaos.lab import NAMES, Lab, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import Answer, ask, make_body, make_prompt, write_request
from tests.chaos.trial import Size, Trial

NUM_GATEWAYS = 4
PER_MINUTE = 10
BUDGET = 10_000
BUDGET_KEY = "lm:count:spent:key:*:day:UTC"
REFUSED = {"rate_limit_exceeded", "insufficient_quota"}
SETTLE_SECONDS = 30.0
KILL_SECONDS = 2.0


async def count_requests(tally: Tally, size: Size) -> None:
    """As many parallel requests as there are rounds meet a key with ten a minute."""
    async with open_lab() as lab:
        ports = [gateway.port for gateway in lab.start_gateways(NUM_GATEWAYS)]
        assert lab.home is not None
        key = lab.home.key("limited-key")
        bodies = [make_body(make_prompt(number), 3) for number in range(size.rounds)]
        asking = (ask(ports[i % NUM_GATEWAYS], key, body) for i, body in enumerate(bodies))
        answers = await asyncio.gather(*asking)
    served = [answer for answer in answers if answer.is_finished]
    tally.judge(len(served) == PER_MINUTE, f"{len(served)} were served, not {PER_MINUTE}")
    for answer in answers:
        if not answer.is_finished:
            is_told = answer.status == 429 and 1 <= answer.retry_after <= 61
            tally.judge(is_told, f"refused with {answer.status} {answer.code}")
            tally.strike()


async def spend_a_budget(tally: Tally, size: Size) -> None:
    """Mixed requests want several times a budget; clients leave, and replicas are killed."""
    rng = random.Random(size.rounds)
    async with open_lab() as lab:
        gateways = lab.start_gateways(NUM_GATEWAYS, max_queue=2000, max_queue_per_key=2000)
        ports = [gateway.port for gateway in gateways]
        assert lab.home is not None
        key = lab.home.key("budget-key")
        killing = asyncio.create_task(_kill_replicas(lab, tally))
        work = (_ask_or_leave(rng, ports, key, number) for number in range(size.rounds))
        answers = [answer for answer in await asyncio.gather(*work) if answer is not None]
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        is_settled = await asyncio.to_thread(lab.wait, lambda: not _held(lab), SETTLE_SECONDS)
        tally.judge(is_settled, f"still held: {_held(lab)[:3]}")
        _judge_budget(lab, answers, tally)
    codes = Counter(answer.code for answer in answers if answer.code)
    tally.judge(any(code in REFUSED for code in codes), f"nobody met the budget: {dict(codes)}")


def _judge_budget(lab: Lab, answers: list[Answer], tally: Tally) -> None:
    [budget] = lab.redis.keys(BUDGET_KEY)
    used, held = (int(value or 0) for value in lab.redis.hmget(budget, "used", "held"))
    recorded = sum(map(_tokens_of, read_records(lab.redis, limit=100_000)))
    told = sum(int(answer.usage.get("total_tokens", 0)) for answer in answers)
    tally.judge(used <= BUDGET, f"{used - BUDGET} tokens were overspent")
    tally.judge(used == recorded, f"used {used}, but the ledger will say {recorded}")
    tally.judge(told <= used, f"clients were told of {told} tokens, but {used} are used")
    tally.judge(held == 0, f"{held} tokens stay reserved")


def _tokens_of(record: UsageRecord) -> int:
    return record.num_prompt_tokens + record.num_completion_tokens


def _held(lab: Lab) -> list[bytes | str]:
    patterns = ("lm:hold:*", "lm:held:*", "lm:holds", "lm:count:open:*")
    return [key for pattern in patterns for key in lab.redis.keys(pattern)]


async def _ask_or_leave(
    rng: random.Random, ports: list[int], key: str, number: int
) -> Answer | None:
    """Make a request of a random form; a client in five leaves it, at some moment."""
    port, wanted = rng.choice(ports), rng.choice((1, 5, 30, 80, None))
    body = make_body(make_prompt(number), wanted or 0, stream=rng.random() < 0.7)
    if wanted is None:
        del body["max_tokens"]
    if not body["stream"]:
        del body["stream_options"]
    if rng.random() < 0.2:
        body["n"] = 2
    patience = rng.random()
    if rng.random() < 0.8:
        return await ask(port, key, body)
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(write_request(key, body))
        await asyncio.sleep(patience)
        writer.close()
    return None


async def _kill_replicas(lab: Lab, tally: Tally) -> None:
    while True:
        for name in NAMES:
            await asyncio.sleep(KILL_SECONDS)
            status = lab.client.registry.get(name)
            # One that is about to load has no process yet.
            if status is not None and status.state is ReplicaState.READY:
                lab.kill_replica(name)
                tally.strike()


TRIALS = (
    Trial("P26", "a key with ten requests a minute, at four gateways", count_requests, 200),
    Trial("P26", "a budget under requests, cancels and kills", spend_a_budget, 500),
)
