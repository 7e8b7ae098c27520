"""Jobs end even when nobody is left to end them; live replicas lose none."""

import time

import pytest

from inference.protocol.events import decode_event
from inference.protocol.replicas import Outlook, Prospect, ReplicaState
from inference.relay import keys
from inference.relay.demand import DemandBoard
from inference.relay.mailbox import CancelInbox
from inference.relay.reaper import ReplicaEnd, reap, sweep
from inference.relay.registry import ReplicaRegistry
from inference.relay.running import RunningJobs
from inference.relay.waiting import WaitingSet
from tests.inference.relay.fakes import make_job, make_status


@pytest.fixture
def registry(client):
    registry = ReplicaRegistry(client)
    registry.beat(make_status())
    return registry


async def run_job(client, gateway, job=None):
    await gateway.submit(job or make_job(), max_queue=8)
    return WaitingSet(client, "chat").take("chat-1").job


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


async def test_jobs_of_a_lost_replica_wait_again_at_the_next_sweep(client, gateway, registry):
    job = await run_job(client, gateway)
    sweep_for_long(client)
    let_leases_lapse(client, "chat-1")
    found = sweep(client)
    assert (found.lost_replicas, found.queued_jobs) == (("chat-1",), (job.id,))
    assert sweep(client).lost_replicas == ()
    taken = WaitingSet(client, "chat").take("chat-2")
    assert (taken.job.id, taken.job.attempt) == (job.id, 2)


async def test_leases_are_not_judged_right_after_a_break(client, gateway, registry):
    await run_job(client, gateway)
    let_leases_lapse(client, "chat-1")
    assert sweep(client).queued_jobs == ()
    assert sweep(client).queued_jobs == ()


async def test_a_live_replica_loses_nothing(client, gateway, registry):
    await run_job(client, gateway)
    sweep_for_long(client)
    assert sweep(client).queued_jobs == ()


async def test_a_dead_process_is_reaped_at_once(client, gateway, registry):
    job = await run_job(client, gateway)
    assert await gateway.reap_if_lost("chat-1") == 0
    assert reap(client, "chat-1", ReplicaEnd.KILLED).queued == (job.id,)
    assert registry.list() == ()


async def test_a_replica_that_says_it_stopped_leaves_its_jobs_to_others(client, gateway, registry):
    job = await run_job(client, gateway)
    registry.beat(make_status(state=ReplicaState.STOPPED))
    assert WaitingSet(client, "chat").take("chat-2").job.id == job.id


async def test_a_cancelled_job_of_a_lost_replica_ends_instead(client, gateway, registry):
    job = await run_job(client, gateway)
    await gateway.cancel([job.id], is_abandoned=False)
    assert reap(client, "chat-1", ReplicaEnd.KILLED).ended == (job.id,)
    assert last_event(client, job).finish_reason == "cancelled"


async def test_an_overdue_job_of_a_lost_replica_ends_instead(client, gateway, registry):
    job = await run_job(client, gateway)
    client.hset(keys.job_key(job.id), "deadline", time.time() - 1)
    assert reap(client, "chat-1", ReplicaEnd.KILLED).ended == (job.id,)
    assert last_event(client, job).code == "deadline_exceeded"


async def test_a_waiting_job_is_untouched_by_the_end_of_a_replica(client, gateway, registry):
    await run_job(client, gateway)
    waiting = make_job()
    await gateway.submit(waiting, max_queue=8)
    reap(client, "chat-1", ReplicaEnd.CRASHED)
    jobs = WaitingSet(client, "chat")
    assert [jobs.take("chat-2").job.attempt for _ in range(2)] == [2, 1]


async def test_waiting_jobs_past_their_deadline_end(client, gateway, registry):
    job = make_job(deadline=time.time() - 0.1)
    await gateway.submit(job, max_queue=8)
    assert sweep(client).ended_jobs == (job.id,)
    assert last_event(client, job).code == "deadline_exceeded"
    assert len(WaitingSet(client, "chat")) == 0


async def test_waiting_jobs_without_a_replica_for_long_end(client, gateway, registry):
    job = make_job()
    await gateway.submit(job, max_queue=8)
    registry.remove("chat-1")
    assert sweep(client, unserved_seconds=1).ended_jobs == ()
    client.hincrbyfloat(keys.UNREADY, "chat", -2)
    assert sweep(client, unserved_seconds=1).ended_jobs == (job.id,)
    assert last_event(client, job).code == "no_ready_replica"
    assert client.exists(keys.UNREADY, keys.BACKLOG) == 0


@pytest.mark.parametrize("told_of", ["chat", "another"])
async def test_jobs_of_a_model_that_is_off_or_gone_end_when_no_replica_has_them(
    client, gateway, registry, told_of
):
    running = await run_job(client, gateway)
    waiting = make_job()
    await gateway.submit(waiting, max_queue=8)
    DemandBoard(client).publish({told_of: Outlook(prospect=Prospect.OFF)})
    assert sweep(client).ended_jobs == ()
    registry.beat(make_status(state=ReplicaState.DRAINING))
    assert sweep(client).ended_jobs == (waiting.id,)
    assert "switched off" in last_event(client, waiting).message
    RunningJobs(client, "chat-1").hand_back([running.id])
    assert sweep(client).ended_jobs == (running.id,)


async def test_waiting_jobs_wait_for_a_replica_that_is_coming(client, gateway, registry):
    await gateway.submit(make_job(), max_queue=8)
    registry.beat(make_status(state=ReplicaState.LOADING))
    sweep(client, unserved_seconds=1)
    client.hincrbyfloat(keys.UNREADY, "chat", -20)
    assert sweep(client, unserved_seconds=1).ended_jobs == ()
    registry.beat(make_status(state=ReplicaState.FAILED))
    sweep(client, unserved_seconds=1)
    client.hincrbyfloat(keys.UNREADY, "chat", -20)
    assert len(sweep(client, unserved_seconds=1).ended_jobs) == 1


async def test_a_sweep_counts_the_tickets_that_are_missing(client, gateway, registry):
    for _ in range(3):
        await gateway.submit(make_job(), max_queue=8)
    assert sweep(client).tickets == {"chat-1": 2}
    client.lpush("gen.chat-1", "a ticket")
    assert sweep(client).tickets == {"chat-1": 1}


async def test_jobs_of_a_gateway_that_is_gone_are_stopped(client, gateway, registry):
    running = await run_job(client, gateway, make_job(gateway="gone"))
    waiting, other = make_job(gateway="gone"), make_job(gateway="alive")
    for job in (waiting, other):
        await gateway.submit(job, max_queue=8)
    client.zadd(keys.GATEWAYS, {"gone": 1, "alive": 1})
    await gateway.greet("alive")
    assert sweep(client).ended_jobs == ()
    sweep_for_long(client)
    assert sweep(client).ended_jobs == (waiting.id,)
    with CancelInbox(client, "chat-1") as inbox:
        assert inbox.pending() == (running.id,)
    assert client.keys(f"*{waiting.id}") == []
    assert WaitingSet(client, "chat").take("chat-1").job == other
