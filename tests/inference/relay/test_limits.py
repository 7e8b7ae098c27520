"""Limits as the scripts keep them: each by itself, and all together against a naive model."""

import random
import time
from dataclasses import dataclass

import pytest

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Failed, FinishReason, Started
from inference.relay import keys
from inference.relay.limits import (
    Counter,
    CounterKind,
    JobNeed,
    LimitReached,
    Meter,
    Period,
    Prices,
    Window,
)
from inference.relay.reaper import ReplicaEnd, reap, sweep
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import WaitingSet
from inference.relay.writer import EventWriter
from tests.inference.relay.fakes import make_job, make_status, make_token
from tests.inference.relay.naive_limits import PROMPT, NaiveLimits, check, need_of


@dataclass(frozen=True, slots=True)
class TurningDay(Window):
    """A day that ends at a time of the test's choice."""

    ends: int

    def around(self, time):
        """Give the day before or after."""
        begins = self.ends - 86400 if time < self.ends else self.ends
        return begins, begins + 86400


# No test sees its end.
DAY = TurningDay(Period.DAY, "UTC", int(time.time()) + 40_000)


def count(kind, bound, subject="key:1", **changes):
    window = DAY if kind in (CounterKind.SPENT_TOKENS, CounterKind.MONEY) else None
    return Counter(kind, subject, bound, **{"window": window, **changes})


def measure(jobs, *counters, least=8, room=1000):
    needs = tuple(JobNeed(job.id, PROMPT, job.max_tokens, room) for job in jobs)
    return Meter(f"request of {jobs[0].id}", counters, needs, 60.0, least)


@pytest.fixture(autouse=True)
def replica(client):
    ReplicaRegistry(client).beat(make_status(num_slots=64))


@pytest.fixture
def jobs(client):
    return WaitingSet(client, "chat")


async def ask(gateway, *counters, num_jobs=1, max_tokens=6, **changes):
    """Submit a request; give its jobs and what it read."""
    jobs = [make_job(max_tokens=max_tokens, **changes) for _ in range(num_jobs)]
    meter = measure(jobs, *counters)
    readings = ()
    for job in jobs:
        admission = await gateway.submit(job, max_queue=999, meter=meter)
        readings, meter = readings or admission.readings, None
    return jobs, readings


async def refusal_of(gateway, *counters, **options):
    with pytest.raises(LimitReached) as raised:
        await ask(gateway, *counters, **options)
    return raised.value


def end(client, job, num_tokens, *, attempt=1, first_seq=1):
    events = [Started(0, 0), *map(make_token, range(num_tokens))]
    events.append(Done(FinishReason.EOS, PROMPT, 0, num_tokens))
    rows = [(job.id, attempt, seq, event) for seq, event in enumerate(events, first_seq)]
    EventWriter(client).write(rows)


def let_pass(client, seconds):
    """Have the time of limits go on."""
    client.hincrbyfloat(keys.CLOCK, "lag", seconds)


def spent_key(kind=CounterKind.SPENT_TOKENS, subject="key:1"):
    return f"lm:count:{kind}:{subject}:day:UTC"


def spent(client, *which):
    used, held = client.hmget(spent_key(*which), "used", "held")
    return int(used), int(held)


def left_behind(client):
    """What is still held by anybody."""
    held = client.keys("lm:hold:*") + client.keys("lm:held:*") + client.keys("lm:count:open:*")
    return held + client.keys("lm:count:queued:*") + client.keys(keys.HOLDS)


async def test_requests_of_any_minute_are_counted_to_the_last(client, gateway):
    limit = count(CounterKind.REQUESTS, 3)
    for left in (2, 1, 0):
        _, [reading] = await ask(gateway, limit)
        assert (reading.left, 60 <= reading.reset_seconds <= 61) == (left, True)
    began = time.monotonic()
    error = await refusal_of(gateway, limit)
    assert (error.code, error.counter) == (ErrorCode.RATE_LIMIT_EXCEEDED, limit)
    let_pass(client, error.retry_after - 20)
    left = (await refusal_of(gateway, limit)).retry_after
    assert 20 - (time.monotonic() - began) - 0.01 < left <= 20
    let_pass(client, left)
    _, [reading] = await ask(gateway, limit)
    assert reading.left >= 0


async def test_a_clock_that_goes_back_gives_nothing_back_and_waits_no_longer(client, gateway):
    limit = count(CounterKind.REQUESTS, 1)
    await ask(gateway, limit)
    client.hincrbyfloat(keys.CLOCK, "at", 3600)  # what was, was at a time that is to come
    client.hincrbyfloat(keys.CLOCK, "lag", -3600)
    error = await refusal_of(gateway, limit)
    assert 50 < error.retry_after <= 61
    let_pass(client, error.retry_after)
    await ask(gateway, limit)


async def test_tokens_are_reserved_and_settled_by_what_was_used(client, gateway, jobs):
    limits = [count(CounterKind.TOKENS, 100), count(CounterKind.SPENT_TOKENS, 1000)]
    [job], readings = await ask(gateway, *limits, max_tokens=50)
    assert [reading.left for reading in readings] == [46, 946]
    assert (await refusal_of(gateway, *limits, max_tokens=50)).counter is limits[0]
    jobs.take("chat-1")
    end(client, job, 5)
    assert spent(client) == (9, 0)
    _, readings = await ask(gateway, *limits, max_tokens=50)
    assert [reading.left for reading in readings] == [37, 937]


async def test_an_answer_without_a_bound_gets_what_the_tightest_limit_leaves(gateway, jobs):
    limits = [count(CounterKind.TOKENS, 500), count(CounterKind.OUTPUT, 120, "team:2")]
    await ask(gateway, *limits, max_tokens=None)
    assert jobs.take("chat-1").job.max_tokens == 120
    await refusal_of(gateway, *limits, max_tokens=None)
    await ask(gateway, limits[0], max_tokens=None, num_jobs=2)
    assert [jobs.take("chat-1").job.max_tokens for _ in range(2)] == [(500 - 124 - 8) // 2] * 2
    await ask(gateway, count(CounterKind.TOKENS, 5000, "user:3"), max_tokens=None)
    assert jobs.take("chat-1").job.max_tokens is None  # all that the context has room for


async def test_one_that_was_told_less_than_the_least_waits_instead(gateway):
    limit = count(CounterKind.SPENT_TOKENS, 30)
    await ask(gateway, limit, max_tokens=15)
    error = await refusal_of(gateway, limit, max_tokens=None)
    # What is held may be given back.
    assert (error.code, error.is_passing) == (ErrorCode.RATE_LIMIT_EXCEEDED, True)


async def test_money_is_counted_at_the_dearest_and_settled_at_the_true_price(client, gateway, jobs):
    limit = count(CounterKind.MONEY, 10_000, prices=Prices(100, 10, 1000))
    [job], [reading] = await ask(gateway, limit, max_tokens=9)
    assert reading.left == 10_000 - 400 - 9000
    await refusal_of(gateway, limit, max_tokens=1)
    jobs.take("chat-1")
    done = Done(FinishReason.EOS, PROMPT, 3, 2)
    EventWriter(client).write([(job.id, 1, 1, Started(0, 3)), (job.id, 1, 2, done)])
    assert spent(client, CounterKind.MONEY) == (100 + 30 + 2000, 0)


@pytest.mark.parametrize("price", [0, 5 * 10**16])
async def test_what_costs_nothing_or_very_much_can_be_settled(client, gateway, jobs, price):
    limit = count(CounterKind.MONEY, 10**18, prices=Prices(price, price, price))
    [job], [reading] = await ask(gateway, limit, max_tokens=9)
    assert reading.left == 10**18 - 13 * price
    jobs.take("chat-1")
    end(client, job, 2)
    assert client.hget(f"lm:job:{job.id}", "state") == b"done"
    assert spent(client, CounterKind.MONEY) == (6 * price, 0)


async def test_a_request_takes_all_or_nothing(client, gateway):
    limits = [count(CounterKind.REQUESTS, 9), count(CounterKind.TOKENS, 25)]
    await refusal_of(gateway, *limits, num_jobs=3)
    assert left_behind(client) == []
    _, readings = await ask(gateway, *limits, num_jobs=2)
    assert [reading.left for reading in readings] == [8, 5]


async def test_what_never_came_in_is_given_back(client, gateway):
    limits = [count(CounterKind.OPEN, 1), count(CounterKind.TOKENS, 100)]
    first, second = make_job(max_tokens=6), make_job(max_tokens=6)
    await gateway.submit(first, max_queue=9, meter=measure([first, second], *limits))
    await gateway.cancel([first.id], is_abandoned=True)
    assert (await refusal_of(gateway, limits[0])).counter is limits[0]
    assert await gateway.cancel([second.id], is_abandoned=True) == ("gone",)
    _, readings = await ask(gateway, *limits)
    assert [reading.left for reading in readings] == [0, 90]


async def test_jobs_of_a_gateway_that_died_before_they_came_in_hold_nothing(client, gateway):
    limit = count(CounterKind.OPEN, 1)
    first, second = make_job(), make_job()
    await gateway.submit(first, max_queue=9, meter=measure([first, second], limit))
    sweep(client)
    client.hincrbyfloat(keys.SWEEP, "since", -10)
    client.zadd(keys.GATEWAYS, {"gw": 1})
    sweep(client)
    assert left_behind(client) == []


async def test_a_lease_that_ran_out_ends_the_job_that_had_it(client, gateway, jobs):
    limits = [count(CounterKind.OPEN, 1), count(CounterKind.SPENT_TOKENS, 100)]
    [job], _ = await ask(gateway, *limits)
    jobs.take("chat-1")
    client.zadd(keys.HOLDS, {job.id: 1})
    assert sweep(client).ended_jobs == (job.id,)
    assert left_behind(client) == []
    assert spent(client) == (0, 0)


async def test_what_queues_counts_beyond_free_slots_and_until_a_slot_has_it(client, gateway, jobs):
    ReplicaRegistry(client).beat(make_status(num_slots=1))
    limit = count(CounterKind.QUEUED, 1)
    await ask(gateway, limit)
    await ask(gateway, limit)
    assert (await refusal_of(gateway, limit)).counter is limit
    jobs.take("chat-1")
    assert (await refusal_of(gateway, limit)).counter is limit
    jobs.take("chat-1")
    await ask(gateway, limit)


async def test_a_budget_is_looked_up_in_the_ledger_where_the_server_has_forgotten_it(
    client, gateway
):
    asked = []

    async def read_spent(counter, since):
        asked.append((counter.subject, since))
        return 70

    gateway.metering._read_spent = read_spent
    limit = count(CounterKind.SPENT_TOKENS, 100)
    since = DAY.around(time.time())[0]
    for num_asked, forget in enumerate(
        (lambda: None, client.flushall, lambda: client.hset(spent_key(), "run", "another")), 1
    ):
        forget()
        ReplicaRegistry(client).beat(make_status())
        [job], [reading] = await ask(gateway, limit, max_tokens=6)
        assert reading.left == 20
        await gateway.cancel([job.id], is_abandoned=True)
        assert asked == [("key:1", since)] * num_asked
    changed = count(CounterKind.SPENT_TOKENS, 100, revision=7)
    await ask(gateway, changed, max_tokens=1)
    await ask(gateway, changed, max_tokens=1)
    await ask(gateway, limit, max_tokens=1)  # by a gateway that has not heard of the change
    assert len(asked) == 4


async def test_the_ledgers_word_counts_only_if_nothing_was_settled_meanwhile(client, gateway, jobs):
    old = count(CounterKind.SPENT_TOKENS, 100)
    [job], _ = await ask(gateway, old)
    jobs.take("chat-1")
    ledger = {"used": 0}

    async def read_spent(counter, since):
        used = ledger["used"]
        if not used:
            end(client, job, 6)  # after the ledger was read
            ledger["used"] = PROMPT + 6
        return used

    gateway.metering._read_spent = read_spent
    await ask(gateway, count(CounterKind.SPENT_TOKENS, 100, revision=1), max_tokens=1)
    assert spent(client) == (10, 5)


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_ever_overspent_and_nothing_stays_held(client, gateway, jobs, seed):
    rng = random.Random(seed)
    counters = [
        count(CounterKind.REQUESTS, 60),
        count(CounterKind.TOKENS, 900),
        count(CounterKind.INPUT, 400, "user:1"),
        count(CounterKind.OUTPUT, 700, "team:1"),
        count(CounterKind.OPEN, 9),
        count(CounterKind.SPENT_TOKENS, 800),
        count(CounterKind.MONEY, 9000, "all", prices=Prices(1, 1, 13)),
    ]
    naive = NaiveLimits(counters)
    waiting, running = [], {}
    for step in range(150):
        if step % 10 == 0:
            ReplicaRegistry(client).beat(make_status(num_slots=64))
        match rng.choice(("ask", "ask", "take", "end", "fail", "cancel", "crash")):
            case "ask":
                asked = [make_job(max_tokens=rng.randrange(40)) for _ in range(rng.choice((1, 3)))]
                meter = measure(asked, *counters)
                fits = naive.fits({one: need_of(one, asked) for one in counters})
                try:
                    for job in asked:
                        await gateway.submit(job, max_queue=999, meter=meter)
                        meter = None
                except LimitReached as error:
                    assert not fits
                    assert naive.taken(error.counter) + need_of(error.counter, asked) > (
                        error.counter.bound
                    )
                else:
                    assert fits
                    naive.take(measure(asked).request, asked)
                    waiting += asked
            case "take" if waiting:
                taken = jobs.take("chat-1")
                job = next(one for one in waiting if one.id == taken.job.id)
                waiting.remove(job)
                running[job.id] = (job, taken.job.attempt, taken.num_events)
            case "end" if running:
                job, attempt, num_events = running.pop(rng.choice(list(running)))
                num_tokens = rng.randrange(job.max_tokens + 1)
                end(client, job, num_tokens, attempt=attempt, first_seq=num_events + 1)
                naive.settle(job.id, PROMPT, num_tokens)
            case "fail" if running:
                job, attempt, num_events = running.pop(rng.choice(list(running)))
                failed = Failed("engine_failed", "It failed.", False, PROMPT, 0)
                EventWriter(client).write([(job.id, attempt, num_events + 1, failed)])
                naive.settle(job.id, PROMPT, 0)
            case "cancel" if waiting:
                job = waiting.pop(rng.randrange(len(waiting)))
                await gateway.cancel([job.id], is_abandoned=rng.random() < 0.5)
                naive.settle(job.id, 0, 0)
            case "crash" if running:
                outcome = reap(client, "chat-1", ReplicaEnd.ORDERLY)
                assert len(outcome.queued) == len(running)
                waiting += [job for job, _, _ in running.values()]
                running.clear()
                ReplicaRegistry(client).beat(make_status(num_slots=64))
        check(client, naive)
    for job in waiting:
        await gateway.cancel([job.id], is_abandoned=True)
    for job, attempt, num_events in running.values():
        end(client, job, 0, attempt=attempt, first_seq=num_events + 1)
    assert left_behind(client) == []
    assert spent(client)[1] == spent(client, CounterKind.MONEY, "all")[1] == 0
