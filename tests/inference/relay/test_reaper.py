"""Jobs end even when nobody is left to end them; live replicas lose none."""

import pytest

from inference.protocol.events import decode_event
from inference.protocol.replicas import ReplicaState
from inference.relay import keys
from inference.relay.reaper import fail_jobs_of, sweep
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import WaitingSet
from tests.inference.relay.fakes import make_job, make_status


@pytest.fixture
def registry(client):
    registry = ReplicaRegistry(client)
    registry.beat(make_status())
    return registry


async def run_job(client, gateway):
    await gateway.submit(make_job(), max_queue=8)
    return WaitingSet(client, "chat").take("chat-1")


def last_event(client, job):
    [(_, fields)] = client.xrevrange(keys.events_key(job.id), count=1)
    return decode_event(fields[b"e"])


def let_leases_lapse(client, *replicas):
    """Do what five seconds without a heartbeat do."""
    client.delete(*(keys.replica_key(replica) for replica in replicas))
    for replica in replicas:
        client.zadd(keys.REPLICAS, {replica: 1})


def sweep_for_long(client):
    """Pretend that sweeps have run without a break for a while."""
    sweep(client)
    client.hincrbyfloat(keys.SWEEP, "since", -10)


async def test_jobs_of_a_lost_replica_end_at_the_next_sweep(client, gateway, registry):
    job = await run_job(client, gateway)
    sweep_for_long(client)
    let_leases_lapse(client, "chat-1")
    found = sweep(client)
    assert (found.lost_replicas, found.failed_jobs) == (("chat-1",), (job.id,))
    event = last_event(client, job)
    assert (event.code, event.is_retryable) == ("engine_lost", True)
    assert sweep(client).lost_replicas == ()


async def test_leases_are_not_judged_right_after_a_break(client, gateway, registry):
    await run_job(client, gateway)
    let_leases_lapse(client, "chat-1")
    assert sweep(client).failed_jobs == ()
    assert sweep(client).failed_jobs == ()


async def test_a_live_replica_loses_nothing(client, gateway, registry):
    await run_job(client, gateway)
    sweep_for_long(client)
    assert sweep(client).failed_jobs == ()


async def test_a_dead_process_is_reaped_at_once(client, gateway, registry):
    job = await run_job(client, gateway)
    assert fail_jobs_of(client, "chat-1", only_if_lease_gone=True) == ()
    assert fail_jobs_of(client, "chat-1") == (job.id,)
    assert registry.list() == ()


async def test_a_replica_that_says_it_failed_loses_its_jobs(client, gateway, registry):
    job = await run_job(client, gateway)
    registry.beat(make_status(state=ReplicaState.FAILED, reason="out of memory"))
    assert last_event(client, job).code == "engine_lost"
    assert registry.get("chat-1").reason == "out of memory"


async def test_waiting_jobs_past_their_deadline_end(client, gateway, registry):
    import time

    job = make_job(deadline=time.time() - 0.1)
    await gateway.submit(job, max_queue=8)
    assert sweep(client).failed_jobs == (job.id,)
    assert last_event(client, job).code == "deadline_exceeded"
    assert len(WaitingSet(client, "chat")) == 0


async def test_waiting_jobs_without_a_replica_for_long_end(client, gateway, registry):
    job = make_job()
    await gateway.submit(job, max_queue=8)
    registry.remove("chat-1")
    assert sweep(client, unserved_seconds=1).failed_jobs == ()
    client.hincrbyfloat(keys.UNREADY, "chat", -2)
    assert sweep(client, unserved_seconds=1).failed_jobs == (job.id,)
    assert last_event(client, job).code == "no_ready_replica"
    assert client.exists(keys.UNREADY, keys.BACKLOG) == 0


async def test_a_sweep_counts_the_tickets_that_are_missing(client, gateway, registry):
    for _ in range(3):
        await gateway.submit(make_job(), max_queue=8)
    assert sweep(client).tickets == {"chat": 2}
    client.lpush("gen.chat", "a ticket")
    assert sweep(client).tickets == {"chat": 1}
