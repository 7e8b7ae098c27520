"""Each job that ends leaves one record of what it used, however it ends."""

import time

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Done, Failed, FinishReason, Started, Timings, Tokens, Vectors
from inference.protocol.jobs import EmbeddingJob
from inference.relay import keys
from inference.relay.reaper import ReplicaEnd, reap, sweep
from inference.relay.registry import ReplicaRegistry
from inference.relay.scripts import script
from inference.relay.usage import drop_records, read_records
from inference.relay.waiting import WaitingSet
from inference.relay.writer import EventWriter
from tests.inference.relay.fakes import DONE, make_job, make_status, make_token

BILL = b'{"key":7}'


@pytest.fixture
async def job(client, gateway):
    ReplicaRegistry(client).beat(make_status())
    job = make_job()
    await gateway.submit(job, max_queue=8, bill=BILL)
    return job


@pytest.fixture
def jobs(client):
    return WaitingSet(client, "chat")


def tell(client, job, *events, attempt=1, first_seq=1):
    rows = [(job.id, attempt, seq, event) for seq, event in enumerate(events, first_seq)]
    assert EventWriter(client).write(rows) == ()


def only_record(client):
    [record] = read_records(client, limit=9)
    return record


async def test_a_job_that_ended_well_leaves_what_its_engine_counted(client, job, jobs):
    jobs.take("chat-1")
    done = Done(FinishReason.LENGTH, 4, 3, 2)
    tell(client, job, Started(0, 3), make_token(1), make_token(2), done)
    record = only_record(client)
    assert (record.job, record.bill, record.deployment) == (job.id, BILL, "chat")
    assert (record.replica, record.node) == ("chat-1", "here")
    assert (record.num_prompt_tokens, record.num_cached_tokens) == (4, 3)
    assert record.num_completion_tokens == 2
    assert (record.finish_reason, record.error_code) == ("length", "")
    assert record.arrived_at <= record.first_at <= record.ended_at <= time.time() + 1


async def test_an_answer_that_came_at_once_began_when_its_engine_says(client, job, jobs):
    jobs.take("chat-1")
    done = Done(FinishReason.LENGTH, 4, 0, 2, timings=Timings(5.0, 40.0, 4))
    tell(client, job, Tokens("t1 t2 ", (1, 2)), done)
    record = only_record(client)
    assert record.ended_at - record.first_at == pytest.approx(0.04, abs=0.001)


async def test_a_record_stays_until_it_is_dropped(client, job, jobs):
    jobs.take("chat-1")
    tell(client, job, DONE)
    record = only_record(client)
    assert only_record(client) == record
    drop_records(client, [record.entry])
    assert client.xlen(keys.USAGE) == 0


async def test_a_repeated_last_event_leaves_no_second_record(client, job, jobs):
    jobs.take("chat-1")
    tell(client, job, DONE)
    tell(client, job, DONE)
    assert client.xlen(keys.USAGE) == 1


async def test_a_job_without_a_bill_leaves_none(client, gateway, job, jobs):
    other = make_job()
    await gateway.submit(other, max_queue=8)
    await gateway.cancel([other.id], is_abandoned=True)
    assert client.xlen(keys.USAGE) == 0


async def test_a_job_that_never_ran_used_nothing(client, gateway, job):
    await gateway.cancel([job.id], is_abandoned=True)
    record = only_record(client)
    assert (record.finish_reason, record.replica, record.first_at) == ("cancelled", "", None)
    assert record.num_prompt_tokens + record.num_completion_tokens == 0


async def test_a_job_that_was_cancelled_while_its_replica_died_used_what_it_told(
    client, gateway, job, jobs
):
    jobs.take("chat-1")
    tell(client, job, Started(0, 1), make_token(1), make_token(2))
    await gateway.cancel([job.id], is_abandoned=True)
    assert reap(client, "chat-1", ReplicaEnd.KILLED).ended == (job.id,)
    record = only_record(client)
    assert (record.num_prompt_tokens, record.num_cached_tokens) == (4, 1)
    assert (record.num_completion_tokens, record.replica) == (2, "chat-1")


async def test_an_engine_that_fails_without_counts_used_what_was_told(client, job, jobs):
    jobs.take("chat-1")
    failed = Failed(ErrorCode.DEADLINE_EXCEEDED, "late")
    tell(client, job, Started(0, 2), make_token(1), failed)
    record = only_record(client)
    assert (record.finish_reason, record.error_code) == ("error", "deadline_exceeded")
    assert (record.num_prompt_tokens, record.num_cached_tokens) == (4, 2)
    assert record.num_completion_tokens == 1


async def test_a_job_goes_on_elsewhere_and_is_recorded_once(client, job, jobs):
    jobs.take("chat-1")
    tell(client, job, Started(0, 0), make_token(1))
    reap(client, "chat-1", ReplicaEnd.KILLED)
    assert client.xlen(keys.USAGE) == 0
    ReplicaRegistry(client).beat(make_status("chat-2", node="there"))
    jobs.take("chat-2")
    tell(client, job, make_token(2), Done(FinishReason.EOS, 4, 0, 2), attempt=2, first_seq=3)
    record = only_record(client)
    assert (record.node, record.num_completion_tokens) == ("there", 2)


@pytest.mark.parametrize("is_abandoned", [True, False])
async def test_whoever_leaves_in_the_middle_has_used_what_was_made_till_then(
    client, gateway, job, jobs, is_abandoned
):
    jobs.take("chat-1")
    tell(client, job, Started(0, 0), *map(make_token, range(10)))
    await gateway.cancel([job.id], is_abandoned=is_abandoned)
    assert client.xlen(keys.USAGE) == 0
    tell(client, job, Done(FinishReason.CANCELLED, 4, 0, 11), first_seq=12)
    record = only_record(client)
    assert (record.num_prompt_tokens, record.num_completion_tokens) == (4, 11)
    assert (record.finish_reason, record.error_code) == ("cancelled", "")


async def test_a_stopped_prompt_counts_once_some_of_it_was_there(client, gateway, job, jobs):
    jobs.take("chat-1")
    tell(client, job, Done(FinishReason.CANCELLED, 4, 0, 0))
    assert only_record(client).num_prompt_tokens == 0


async def test_inputs_of_a_lost_list_count_as_far_as_their_vectors_came(client, gateway):
    ReplicaRegistry(client).beat(make_status())
    job = EmbeddingJob(
        id="list",
        deployment="chat",
        owner="alice",
        gateway="gw",
        inputs=((1, 2, 3), (4, 5), (6,)),
        deadline=time.time() + 60,
    )
    await gateway.submit(job, max_queue=8, bill=BILL)
    WaitingSet(client, "chat").take("chat-1")
    tell(client, job, Started(0, 0), Vectors(0, 2, ("AAAA", "AAAA")))
    await gateway.cancel([job.id], is_abandoned=False)
    reap(client, "chat-1", ReplicaEnd.KILLED)
    assert only_record(client).num_prompt_tokens == 5


async def test_the_answer_is_recorded_only_where_the_bill_asks_for_it(client, gateway, job, jobs):
    kept = make_job()
    await gateway.submit(kept, max_queue=8, bill=b'{"text_days":3,"key":7}')
    for one in (job, kept):
        jobs.take("chat-1")
        tell(client, one, make_token(1), make_token(2), DONE)
    assert [record.answer for record in read_records(client, limit=9)] == ["", "t1 t2 "]


async def test_what_nobody_ended_for_days_is_ended_and_recorded(client, gateway, job, jobs):
    # The whole machine was off: neither replica, nor gateway, nor sweeper ended the job in time.
    assert client.ttl(keys.job_key(job.id)) > 6 * 24 * 3600
    client.hset(keys.job_key(job.id), "deadline", time.time() - 9)
    client.zadd(keys.DEADLINES, {job.id: time.time() - 9})
    assert sweep(client).ended_jobs == (job.id,)
    assert only_record(client).error_code == "deadline_exceeded"


async def test_no_more_is_taken_in_than_can_be_recorded(client, gateway, job, monkeypatch):
    monkeypatch.setattr(keys, "MAX_UNRECORDED", 1)
    script.cache_clear()
    client.xadd(keys.USAGE, {"job": "x"})
    with pytest.raises(EngineError) as caught:
        await gateway.submit(make_job(), max_queue=8, bill=BILL)
    script.cache_clear()
    assert caught.value.code is ErrorCode.BROKER_UNAVAILABLE
