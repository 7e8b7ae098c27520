"""A budget is there again when its day ends, by the server's clock, and not before."""

import asyncio
import time
from dataclasses import dataclass

import pytest

from inference.protocol.errors import ErrorCode
from inference.relay.limits import CounterKind, Period, Window
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import WaitingSet
from tests.inference.relay.fakes import make_status
from tests.inference.relay.test_limits import DAY, PROMPT, ask, count, end, refusal_of


@dataclass(frozen=True, slots=True)
class TurningDay(Window):
    """A day that ends at a time of the test's choice."""

    ends: int

    def around(self, time):
        """Give the day before or after."""
        begins = self.ends - 86400 if time < self.ends else self.ends
        return begins, begins + 86400


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
    ends = DAY.around(time.time())[1]
    assert time.time() + error.retry_after == pytest.approx(ends, abs=5)


async def test_what_was_used_counts_in_its_own_day_and_what_is_held_in_the_next(
    client, gateway, jobs
):
    ends = int(time.time() + 1.5)
    day = TurningDay(Period.DAY, "UTC", ends)
    limit = count(CounterKind.SPENT_TOKENS, 30, window=day)
    [job], _ = await ask(gateway, limit, max_tokens=20)
    jobs.take("chat-1")
    end(client, job, 20)
    error = await refusal_of(gateway, limit, max_tokens=6)
    assert time.time() + error.retry_after == pytest.approx(ends, abs=0.2)
    await asyncio.sleep(error.retry_after + 0.01)
    _, [reading] = await ask(gateway, limit, max_tokens=6)
    assert (reading.left, reading.reset_seconds > 86000) == (30 - PROMPT - 6, True)
    assert (await refusal_of(gateway, limit, max_tokens=20)).is_passing
