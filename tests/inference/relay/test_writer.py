"""Events are written once, in order, by the one writer that may."""

import signal

import pytest

from inference.protocol.events import Tokens, decode_event
from inference.relay.keys import events_key
from inference.relay.reaper import ReplicaEnd, reap
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import WaitingSet
from inference.relay.writer import EventWriter
from tests.inference.relay.fakes import DONE, Ear, make_job, make_status, make_token


@pytest.fixture
async def job(client, gateway):
    """A job that replica chat-1 runs."""
    ReplicaRegistry(client).beat(make_status())
    await gateway.submit(make_job(), max_queue=8)
    return WaitingSet(client, "chat").take("chat-1").job


def kept(client, job) -> list[tuple[bytes, object]]:
    return [(seq, decode_event(f[b"e"])) for seq, f in client.xrange(events_key(job.id))]


async def test_a_step_is_stored_and_told_to_its_gateway_in_one_message(client, job):
    ear = Ear(client)
    rows = [(job.id, 1, 1, make_token(1)), (job.id, 1, 2, make_token(2))]
    assert EventWriter(client).write(rows) == ()
    assert ear.hear() == [
        (job.id, 1, make_token(1)),
        (job.id, 2, make_token(2)),
    ]
    assert kept(client, job) == [(b"0-1", make_token(1)), (b"0-2", make_token(2))]


async def test_a_second_writer_cannot_write_an_event_again(client, job):
    EventWriter(client).write([(job.id, 1, 1, make_token(1))])
    EventWriter(client).write([(job.id, 1, 1, Tokens("other", (9,)))])
    assert kept(client, job) == [(b"0-1", make_token(1))]


async def test_an_older_attempt_is_refused(client, job):
    writer = EventWriter(client)
    writer.write([(job.id, 1, 1, make_token(1))])
    assert reap(client, "chat-1", ReplicaEnd.KILLED).queued == (job.id,)
    assert writer.write([(job.id, 1, 2, make_token(9))]) == (job.id,)
    taken = WaitingSet(client, "chat").take("chat-2")
    assert (taken.job.attempt, taken.num_events) == (2, 1)
    assert writer.write([(job.id, 1, 2, make_token(9))]) == (job.id,)
    assert EventWriter(client).write([(job.id, 2, 2, make_token(2))]) == ()
    assert kept(client, job) == [(b"0-1", make_token(1)), (b"0-2", make_token(2))]


async def test_nothing_follows_the_end(client, job):
    EventWriter(client).write([(job.id, 1, 1, DONE)])
    other = EventWriter(client)
    assert other.write([(job.id, 1, 2, make_token(2))]) == (job.id,)
    assert kept(client, job) == [(b"0-1", DONE)]


async def test_the_end_frees_the_slot_and_makes_the_keys_expire(client, job):
    assert client.smembers("lm:run:chat-1") == {job.id.encode()}
    EventWriter(client).write([(job.id, 1, 1, DONE)])
    assert client.exists("lm:run:chat-1") == 0
    assert 0 < client.ttl(events_key(job.id)) <= 60


async def test_a_hole_in_the_numbers_is_a_mistake_of_the_caller(client, job):
    with pytest.raises(ValueError, match="out of order"):
        writer = EventWriter(client)
        writer.write([(job.id, 1, 1, make_token(1)), (job.id, 1, 3, make_token(3))])


async def test_events_the_server_lost_are_written_again(client, job):
    writer = EventWriter(client)
    for number in range(1, 6):
        writer.write([(job.id, 1, number, make_token(number))])
    # What a crash between two fsyncs of the append-only file does to a stream.
    client.delete(events_key(job.id))
    client.xadd(events_key(job.id), {"e": b'["t","t1 ",[1],[]]'}, id="0-1")
    assert writer.write([(job.id, 1, 6, make_token(6))]) == ()
    assert [event for _, event in kept(client, job)] == [make_token(n) for n in range(1, 7)]


async def test_events_survive_a_server_that_is_away(broker, client, job):
    writer = EventWriter(client)
    writer.write([(job.id, 1, 1, make_token(1))])
    broker.stop(signal.SIGKILL)
    assert writer.write([(job.id, 1, 2, make_token(2))]) == ()
    assert writer.has_unsent
    broker.start()
    assert writer.write([(job.id, 1, 3, DONE)]) == ()
    assert not writer.has_unsent
    assert [event for _, event in kept(client, job)] == [make_token(1), make_token(2), DONE]


async def test_events_survive_a_server_without_memory(client, job):
    writer = EventWriter(client)
    client.config_set("maxmemory", 1)
    try:
        assert writer.write([(job.id, 1, 1, make_token(1))]) == ()
        assert writer.has_unsent
    finally:
        client.config_set("maxmemory", 0)
    assert writer.write([(job.id, 1, 2, DONE)]) == ()
    assert [event for _, event in kept(client, job)] == [make_token(1), DONE]


async def test_a_long_backlog_is_sent_in_several_calls(client, job):
    rows = [(job.id, 1, number, make_token(number)) for number in range(1, 2501)]
    EventWriter(client).write(rows)
    assert client.xlen(events_key(job.id)) == 2500
