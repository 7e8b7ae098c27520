"""A budget is there again when its day ends, by the server's clock, and not before."""

import time

import pytest

from inference.protocol.errors import ErrorCode
from inference.relay.limits import CounterKind, Period
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
