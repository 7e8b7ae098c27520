"""A job that ends replicas is found among its neighbours, who go on; it is not tried for ever."""

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.relay import keys
from inference.relay.reaper import ReplicaEnd, reap
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import NOT_YET, TakenJob, WaitingSet
from inference.relay.writer import EventWriter
from tests.inference.relay.fakes import DONE, make_job, make_status, make_token
from tests.inference.relay.test_reaper import last_event


@pytest.fixture
def jobs(client):
    ReplicaRegistry(client).beat(make_status(num_slots=8))
    return WaitingSet(client, "chat")


async def take_all(gateway, jobs, *wanted, replica="chat-1"):
    for job in wanted:
        await gateway.submit(job, max_queue=99)
    return [jobs.take(replica) for _ in wanted]


def write_token(client, taken, number=1):
    """Tell the job's next token."""
    row = (taken.job.id, taken.job.attempt, taken.num_events + 1, make_token(number))
    assert EventWriter(client).write([row]) == ()


async def test_a_crash_without_a_new_token_twice_is_refused_for_good(client, gateway, jobs):
    job = make_job()
    await take_all(gateway, jobs, job)
    assert reap(client, "chat-1", ReplicaEnd.CRASHED).queued == (job.id,)
    assert jobs.take("chat-2").job.attempt == 2
    assert reap(client, "chat-2", ReplicaEnd.CRASHED).ended == (job.id,)
    end = last_event(client, job)
    assert (end.code, end.is_retryable) == (ErrorCode.REQUEST_CRASHED_ENGINE, False)


async def test_the_same_request_is_refused_at_once_whoever_sends_it(client, gateway, jobs):
    job = make_job(prompt_tokens=(6, 6, 6))
    await take_all(gateway, jobs, job)
    reap(client, "chat-1", ReplicaEnd.CRASHED)
    jobs.take("chat-1")
    reap(client, "chat-1", ReplicaEnd.CRASHED)
    ReplicaRegistry(client).beat(make_status())
    with pytest.raises(EngineError) as caught:
        await gateway.submit(make_job("bob", prompt_tokens=(6, 6, 6), salt="bob"), max_queue=9)
    assert caught.value.code is ErrorCode.REQUEST_CRASHED_ENGINE
    await gateway.submit(make_job(prompt_tokens=(6, 6, 7)), max_queue=9)


async def test_a_kill_counts_less_than_a_crash(client, gateway, jobs):
    await take_all(gateway, jobs, make_job())
    for _ in range(2):
        assert len(reap(client, "chat-1", ReplicaEnd.KILLED).queued) == 1
        jobs.take("chat-1")
    assert len(reap(client, "chat-1", ReplicaEnd.KILLED).ended) == 1


async def test_orderly_ends_count_nothing(client, gateway, jobs):
    await take_all(gateway, jobs, make_job())
    for _ in range(9):
        assert len(reap(client, "chat-1", ReplicaEnd.ORDERLY).queued) == 1
        assert isinstance(jobs.take("chat-1"), TakenJob)


async def test_new_tokens_clear_a_job(client, gateway, jobs):
    [taken] = await take_all(gateway, jobs, make_job())
    for number in range(3):
        assert len(reap(client, "chat-1", ReplicaEnd.CRASHED).queued) == 1
        taken = jobs.take("chat-1")
        write_token(client, taken, number)
    assert taken.job.emitted_tokens == (0, 1)
    # But not for ever.
    assert len(reap(client, "chat-1", ReplicaEnd.CRASHED).ended) == 1


async def test_one_suspect_at_a_time_is_tried_on_a_replica(client, gateway, jobs):
    await take_all(gateway, jobs, *(make_job() for _ in range(3)))
    reap(client, "chat-1", ReplicaEnd.CRASHED)
    first = jobs.take("chat-1")
    assert jobs.take("chat-1") is NOT_YET
    assert jobs.take("chat-2").job.id != first.job.id
    ReplicaRegistry(client).beat(make_status())
    newcomer = make_job()
    await gateway.submit(newcomer, max_queue=9)
    assert jobs.take("chat-1").job == newcomer
    write_token(client, first)
    last = jobs.take("chat-1")
    assert jobs.take("chat-1") is None
    EventWriter(client).write([(last.job.id, 2, 1, DONE)])
    assert client.exists(keys.PREFIXES["TRIAL"] + "chat-1") == 0


async def test_a_poison_costs_two_replicas_and_no_neighbour(client, gateway, jobs):
    """Whenever the poison is among the jobs that run, the replica crashes."""
    poison = make_job("poison")
    good = [make_job(f"owner{number}") for number in range(20)]
    for job in [*good[:4], poison, *good[4:]]:
        await gateway.submit(job, max_queue=99)
    writer = EventWriter(client)
    num_crashes, done, running = 0, [], {}
    while len(done) < len(good) or running:
        while len(running) < 8 and isinstance(taken := jobs.take("chat-1"), TakenJob):
            running[taken.job.id] = taken
        if poison.id in running:
            num_crashes += 1
            reap(client, "chat-1", ReplicaEnd.CRASHED)
            running.clear()
            continue
        for job, taken in running.items():
            end = (job, taken.job.attempt, taken.num_events + 2, DONE)
            write_token(client, taken)
            assert writer.write([end]) == ()
            done.append(job)
        running.clear()
    assert num_crashes == 2
    assert sorted(done) == sorted(job.id for job in good)
    assert last_event(client, poison).code == ErrorCode.REQUEST_CRASHED_ENGINE
