"""Limits that are set while jobs of their subjects wait and run: those count, too."""

import pytest

from inference.protocol.errors import ErrorCode
from inference.relay import keys
from inference.relay.limits import CounterKind, JobNeed, Meter, Stake
from inference.relay.reaper import sweep
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import WaitingSet
from tests.inference.relay.fakes import make_job, make_status
from tests.inference.relay.naive_limits import PROMPT
from tests.inference.relay.test_limits import (
    ask,
    count,
    end,
    left_behind,
    refusal_of,
    spent,
)


@pytest.fixture(autouse=True)
def replica(client):
    ReplicaRegistry(client).beat(make_status(num_slots=64))


@pytest.fixture
def jobs(client):
    return WaitingSet(client, "chat")


async def let_in(gateway, *subjects, most=20):
    """Let a job in that meets no limit yet."""
    job = make_job(max_tokens=most)
    await gateway.submit(job, max_queue=999, stake=Stake(PROMPT, most, subjects))
    return job


async def test_a_new_budget_holds_what_open_jobs_may_use_and_counts_what_they_used(
    client, gateway, jobs
):
    running, waiting = await let_in(gateway, "key:1", "user:2"), await let_in(gateway, "key:1")
    await let_in(gateway, "key:11", "user:1")
    jobs.take("chat-1")
    limit = count(CounterKind.SPENT_TOKENS, 60, revision=1)
    error = await refusal_of(gateway, limit, max_tokens=9)
    assert (error.code, error.is_passing) == (ErrorCode.RATE_LIMIT_EXCEEDED, True)
    _, [reading] = await ask(gateway, limit, max_tokens=8)
    assert reading.left == 0
    end(client, running, 5)
    await gateway.cancel([waiting.id], is_abandoned=True)
    assert spent(client) == (PROMPT + 5, PROMPT + 8)


async def test_a_job_that_ends_while_the_ledger_is_asked_is_counted(client, gateway, jobs):
    job = await let_in(gateway, "key:1")
    jobs.take("chat-1")
    ledger = []

    async def read_spent(counter, since):
        ledger.append(0 if not ledger else PROMPT + 7)
        if len(ledger) == 1:
            end(client, job, 7)  # after it was read
        return ledger[-1]

    gateway.metering._read_spent = read_spent
    _, [reading] = await ask(gateway, count(CounterKind.SPENT_TOKENS, 60, revision=1), max_tokens=6)
    assert reading.left == 60 - (PROMPT + 7) - (PROMPT + 6)


async def test_what_runs_and_waits_counts_for_new_limits_of_how_many_may(client, gateway, jobs):
    ReplicaRegistry(client).beat(make_status(num_slots=1))
    first, second = await let_in(gateway, "team:3"), await let_in(gateway, "team:3")
    jobs.take("chat-1")
    opened = count(CounterKind.OPEN, 2, "team:3", revision=1)
    queued = count(CounterKind.QUEUED, 1, "team:3", revision=1)
    assert (await refusal_of(gateway, opened)).counter is opened
    assert (await refusal_of(gateway, queued)).counter is queued
    end(client, first, 1)
    await ask(gateway, opened)
    jobs.take("chat-1")
    await ask(gateway, queued)
    assert client.zcard("lm:count:open:team:3") == 2
    end(client, second, 1)
    assert client.zcard("lm:count:open:team:3") == 1


async def test_what_a_gateway_lets_in_that_has_not_heard_of_a_limit_is_counted_later(
    client, gateway, jobs
):
    budget = count(CounterKind.SPENT_TOKENS, 100, revision=5)
    opened = count(CounterKind.OPEN, 9, revision=5)
    [own], _ = await ask(gateway, budget, opened, max_tokens=6)
    ended, running = await let_in(gateway, "key:1"), await let_in(gateway, "key:1")
    jobs.take("chat-1"), jobs.take("chat-1"), jobs.take("chat-1")
    end(client, ended, 3)

    async def read_spent(counter, since):
        return PROMPT + 3

    gateway.metering._read_spent = read_spent
    sweep(client)
    client.zadd(keys.COUNTED_ANEW, dict.fromkeys(client.zrange(keys.COUNTED_ANEW, 0, -1), 1))
    sweep(client)
    for _ in range(2):  # once more, and no more than that
        [last], readings = await ask(gateway, budget, opened, max_tokens=1)
        assert readings[0].left == 100 - (PROMPT + 3) - 10 - 24 - (PROMPT + 1)
        assert readings[1].left == 9 - 3
        assert client.zcard(keys.COUNTED_ANEW) == 0
        await gateway.cancel([last.id], is_abandoned=True)
    end(client, own, 6)
    end(client, running, 20)
    assert left_behind(client) == []
    assert spent(client) == (PROMPT + 3 + 10 + 24, 0)


async def test_what_a_limit_had_granted_is_what_a_newer_one_holds(client, gateway, jobs):
    job = make_job(max_tokens=None)
    tight = count(CounterKind.OUTPUT, 30)
    meter = Meter("first", (tight,), (JobNeed(job.id, PROMPT, None, 1000),), 60.0, 8)
    stake = Stake(PROMPT, 1000, ("key:1",))
    await gateway.submit(job, max_queue=9, stake=stake, meter=meter)
    _, [reading] = await ask(gateway, count(CounterKind.SPENT_TOKENS, 100, revision=1))
    assert reading.left == 100 - (PROMPT + 30) - (PROMPT + 6)
