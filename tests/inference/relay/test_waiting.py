"""Who is next: priority, fair shares, bounds, deadlines."""

import time

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import decode_event
from inference.protocol.text import Detokenize, TextRequest
from inference.relay.keys import events_key, job_key
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import WaitingSet, waiting_counts
from tests.inference.relay.fakes import DONE, make_job, make_status


@pytest.fixture
def ready(client):
    registry = ReplicaRegistry(client)
    registry.beat(make_status())
    return registry


async def test_a_submitted_job_is_taken_as_it_was_sent(client, gateway, ready):
    job = make_job()
    admission = await gateway.submit(job, max_queue=8)
    assert (admission.num_ahead, admission.ticket_for) == (0, "chat-1")
    assert WaitingSet(client, "chat").take("chat-1").job == job
    assert WaitingSet(client, "chat").take("chat-1") is None


async def test_a_hundred_jobs_of_one_owner_do_not_delay_another_owners_one(client, gateway, ready):
    for _ in range(100):
        await gateway.submit(make_job("hog"), max_queue=500)
    waiting = WaitingSet(client, "chat")
    assert waiting.take("chat-1").job.owner == "hog"
    await gateway.submit(make_job("guest"), max_queue=500)
    owners = [waiting.take("chat-1").job.owner for _ in range(2)]
    assert "guest" in owners


async def test_shares_are_counted_in_tokens(client, gateway, ready):
    for _ in range(8):
        await gateway.submit(make_job("long", max_tokens=396), max_queue=500)
        await gateway.submit(make_job("short", max_tokens=96), max_queue=500)
    waiting = WaitingSet(client, "chat")
    owners = [waiting.take("chat-1").job.owner for _ in range(10)]
    assert owners.count("short") == 8


async def test_jobs_of_one_owner_keep_their_order(client, gateway, ready):
    jobs = [make_job() for _ in range(20)]
    for job in jobs:
        await gateway.submit(job, max_queue=500)
    waiting = WaitingSet(client, "chat")
    assert [waiting.take("chat-1").job.id for _ in jobs] == [job.id for job in jobs]


async def test_a_higher_priority_goes_first_whatever_the_shares(client, gateway, ready):
    for _ in range(5):
        await gateway.submit(make_job("hog"), max_queue=500)
    urgent = make_job("hog", priority=3)
    assert (await gateway.submit(urgent, max_queue=500)).num_ahead == 0
    assert WaitingSet(client, "chat").take("chat-1").job == urgent


async def test_a_cancelled_waiting_job_does_not_count_against_its_owner(client, gateway, ready):
    jobs = [make_job("fickle") for _ in range(50)]
    await gateway.submit(make_job("other"), max_queue=500)
    for job in jobs:
        await gateway.submit(job, max_queue=500)
    await gateway.cancel([job.id for job in jobs], is_abandoned=True)
    await gateway.submit(make_job("other"), max_queue=500)
    await gateway.submit(make_job("fickle"), max_queue=500)
    waiting = WaitingSet(client, "chat")
    assert "fickle" in [waiting.take("chat-1").job.owner for _ in range(2)]


async def test_the_queue_bound_counts_jobs_beyond_the_sleeping_slots(client, gateway, ready):
    for _ in range(2 + 3):
        await gateway.submit(make_job(), max_queue=3)
    with pytest.raises(EngineError) as caught:
        await gateway.submit(make_job(), max_queue=3)
    assert caught.value.code is ErrorCode.QUEUE_FULL
    assert waiting_counts(client) == {"chat": 5}


async def test_nothing_is_queued_without_a_ready_replica(client, gateway):
    with pytest.raises(EngineError) as caught:
        await gateway.submit(make_job(), max_queue=3)
    assert caught.value.code is ErrorCode.NO_READY_REPLICA
    assert client.dbsize() == 0


async def test_submitting_twice_queues_once(client, gateway, ready):
    job = make_job()
    await gateway.submit(job, max_queue=3)
    await gateway.submit(job, max_queue=3)
    assert len(WaitingSet(client, "chat")) == 1


async def test_an_overdue_job_is_ended_instead_of_taken(client, gateway, ready):
    late = make_job(deadline=time.time() - 1)
    in_time = make_job()
    await gateway.submit(late, max_queue=3)
    await gateway.submit(in_time, max_queue=3)
    assert WaitingSet(client, "chat").take("chat-1").job == in_time
    [(seq, fields)] = client.xrange(events_key(late.id))
    assert seq == b"0-1"
    assert decode_event(fields[b"e"]).code == ErrorCode.DEADLINE_EXCEEDED


async def test_no_ticket_is_wanted_while_every_slot_is_awake(client, gateway, ready):
    waiting = WaitingSet(client, "chat")
    jobs = [make_job() for _ in range(4)]
    assert (await gateway.submit(jobs[0], max_queue=9)).ticket_for
    assert (await gateway.submit(jobs[1], max_queue=9)).ticket_for
    waiting.take("chat-1")
    waiting.take("chat-1")
    assert not (await gateway.submit(jobs[2], max_queue=9)).ticket_for
    assert waiting.take("chat-1", finished=jobs[0].id).job == jobs[2]
    assert waiting.take("chat-1", finished=jobs[1].id) is None
    assert (await gateway.submit(jobs[3], max_queue=9)).ticket_for


async def test_a_slot_that_never_came_back_counts_as_asleep_after_a_beat(client, gateway, ready):
    from inference.relay.writer import EventWriter

    job = make_job()
    await gateway.submit(job, max_queue=9)
    WaitingSet(client, "chat").take("chat-1")
    ready.beat(make_status(num_slots=1))
    EventWriter(client).write([(job.id, 1, 1, DONE)])
    assert not (await gateway.submit(make_job(), max_queue=9)).ticket_for
    ready.beat(make_status(num_slots=1))
    assert (await gateway.submit(make_job(), max_queue=9)).ticket_for


async def test_a_server_without_memory_takes_nothing_in(client, gateway, ready):
    question = Detokenize(tokens=(1,))
    request = TextRequest(id="q", gateway="gw", deadline=time.time() + 5, question=question)
    client.config_set("maxmemory", 1)
    try:
        for call in (
            gateway.submit(make_job(id="late"), max_queue=8),
            gateway.ask("chat", request),
        ):
            with pytest.raises(EngineError) as caught:
                await call
            assert caught.value.code is ErrorCode.BROKER_UNAVAILABLE
    finally:
        client.config_set("maxmemory", 0)
    assert not client.exists(job_key("late"))
    await gateway.submit(make_job(id="late"), max_queue=8)
