"""A budget is there again when its day ends, by the server's clock, and not before."""

import time
from types import SimpleNamespace

import pytest

from inference.protocol.errors import ErrorCode
from inference.relay.limits import CounterKind, Period, read_refused
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import WaitingSet
from tests.inference.relay.fakes import make_status
from tests.inference.relay.naive_limits import PROMPT
from tests.inference.relay.test_limits import (
    DAY,
    TurningDay,
    ask,
    count,
    end,
    refusal_of,
    spent,
    spent_key,
)


@pytest.fixture(autouse=True)
def replica(client):
    ReplicaRegistry(client).beat(make_status(num_slots=64))


@pytest.fixture
def jobs(client):
    return WaitingSet(client, "chat")


async def test_a_budget_that_is_used_up_is_so_until_its_window_ends(client, gateway, jobs):
    limit = count(CounterKind.SPENT_TOKENS, 30)
    [job], _ = await ask(gateway, limit, max_tokens=20)
    jobs.take("chat-1")
    end(client, job, 20)
    error = await refusal_of(gateway, limit, max_tokens=6)
    assert error.code is ErrorCode.INSUFFICIENT_QUOTA
    assert time.time() + error.retry_after == pytest.approx(DAY.ends, abs=60)


async def test_what_was_used_counts_in_its_own_day_and_what_is_held_in_the_next(
    client, gateway, jobs
):
    ends = int(time.time()) + 1000
    limit = count(CounterKind.SPENT_TOKENS, 30, window=TurningDay(Period.DAY, "UTC", ends))
    [job], _ = await ask(gateway, limit, max_tokens=20)
    jobs.take("chat-1")
    end(client, job, 20)
    error = await refusal_of(gateway, limit, max_tokens=6)
    assert time.time() + error.retry_after == pytest.approx(ends, abs=60)
    # As if that day had just ended.
    day = TurningDay(Period.DAY, "UTC", int(time.time()))
    limit = count(CounterKind.SPENT_TOKENS, 30, window=day)
    _, [reading] = await ask(gateway, limit, max_tokens=6)
    assert (reading.left, reading.reset_seconds > 86000) == (30 - PROMPT - 6, True)
    assert (await refusal_of(gateway, limit, max_tokens=20)).is_passing


def of_day(ends):
    return count(CounterKind.SPENT_TOKENS, 60, window=TurningDay(Period.DAY, "UTC", int(ends)))


@pytest.fixture
def ledger(gateway):
    """What the ledger says is used, and how often it was asked."""
    ledger = SimpleNamespace(used=0, num_asked=0)

    async def read_spent(counter, since):
        ledger.num_asked += 1
        return ledger.used

    gateway.metering._read_spent = read_spent
    return ledger


async def test_a_job_that_goes_on_past_the_end_counts_in_the_day_that_it_ends_in(
    client, gateway, jobs, ledger
):
    [job], _ = await ask(gateway, of_day(time.time() + 1000), max_tokens=40)
    jobs.take("chat-1")
    today = of_day(time.time())
    error = await refusal_of(gateway, today, max_tokens=20)
    assert error.is_passing
    _, [reading] = await ask(gateway, today, max_tokens=1)
    assert reading.left == 60 - (PROMPT + 40) - (PROMPT + 1)
    end(client, job, 10)
    assert spent(client) == (PROMPT + 10, PROMPT + 1)
    # Once for the first day, and once for the second.
    assert ledger.num_asked == 2


async def test_a_job_that_ends_before_anybody_asks_for_the_next_day_counts_in_it(
    client, gateway, jobs, ledger
):
    [job], _ = await ask(gateway, of_day(time.time() + 1000), max_tokens=40)
    jobs.take("chat-1")
    client.hset(spent_key(), "to", int(time.time()) - 1)
    end(client, job, 40)
    ledger.used = PROMPT + 40
    _, [reading] = await ask(gateway, of_day(time.time()), max_tokens=1)
    assert reading.left == 60 - (PROMPT + 40) - (PROMPT + 1)


async def test_a_day_that_nothing_goes_on_into_needs_no_ledger(client, gateway, jobs, ledger):
    [job], _ = await ask(gateway, of_day(time.time() + 1000), max_tokens=40)
    jobs.take("chat-1")
    end(client, job, 40)
    _, [reading] = await ask(gateway, of_day(time.time()), max_tokens=1)
    assert (reading.left, ledger.num_asked) == (60 - (PROMPT + 1), 1)


async def test_a_refusal_is_noted_until_the_day_ends(client, gateway, jobs, ledger):
    limit = of_day(time.time() + 1000)
    [job], _ = await ask(gateway, limit, max_tokens=40)
    await refusal_of(gateway, limit, max_tokens=20)
    begins = limit.window.around(time.time())[0]
    name = "spent:key:1:day:UTC"
    # What runs may give something back.
    assert read_refused(client, {name: (begins, 0)}) == set()
    jobs.take("chat-1")
    end(client, job, 40)
    await refusal_of(gateway, limit, max_tokens=20)
    assert read_refused(client, {name: (begins, 0), "spent:key:2:day:UTC": (begins, 0)}) == {name}
    assert read_refused(client, {name: (begins + 86400, 0)}) == set()
    assert read_refused(client, {name: (begins, 1)}) == set()
    await ask(gateway, of_day(time.time()))
    assert read_refused(client, {name: (begins, 0)}) == set()
