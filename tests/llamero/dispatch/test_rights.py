"""Who loses the right to call loses what they have open."""

import asyncio
import time

import pytest

from inference.protocol.errors import ErrorCode
from inference.relay.rights import RIGHTS_CHANNEL, announce
from llamero.dispatch import rights
from llamero.dispatch.farewells import RELEASE_PAUSE_SECONDS
from tests.inference.relay.fakes import DONE, make_job, make_token
from tests.llamero.dispatch import reviewing
from tests.llamero.dispatch.reading import read, until
from tests.processes import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def forget_reviews():
    reviewing.lost.clear()
    reviewing.asked.clear()


async def submit(dispatcher, owner, **changes):
    job = make_job(owner, gateway=dispatcher.gateway_id, **changes)
    return await dispatcher.submit(job, max_queue=8)


@pytest.mark.parametrize("is_durable", [False, True])
async def test_a_message_ends_streams_at_once_and_stops_their_jobs(
    dispatcher, replica, monkeypatch, is_durable
):
    monkeypatch.setattr(rights, "REVIEW_SECONDS", 60)
    stream = await submit(dispatcher, "key:1", is_durable=is_durable)
    other = await submit(dispatcher, "key:2")
    taken = {replica.take(), replica.take()}
    replica.write(stream.job.id, 1, make_token(1))
    reviewing.lost.add("key:1")
    announce(replica.redis, ["key:1", "key:3"])
    *told, end = await read(stream)
    assert told == [make_token(1)]
    assert (end.code, end.is_retryable) == (ErrorCode.KEY_REVOKED, False)
    stopped = {stream.job.id.encode()}
    await until(lambda: replica.redis.smembers("lm:cancel:chat-1") == stopped)
    assert taken == {stream.job.id, other.job.id}
    assert not other.is_ended
    for one in (stream, other):
        await one.close()


async def test_what_a_job_used_is_told_though_its_reader_may_no_more(dispatcher, replica):
    job = make_job("key:1", gateway=dispatcher.gateway_id)
    stream = await dispatcher.submit(job, max_queue=8, bill=b"{}")
    replica.take()
    replica.write(job.id, 1, make_token(1))
    reviewing.lost.add("key:1")
    announce(replica.redis, ["key:1"])
    await read(stream)
    await stream.close()
    await until(lambda: replica.inbox.pending() == (job.id,))
    await asyncio.sleep(2 * RELEASE_PAUSE_SECONDS)
    replica.write(job.id, 2, DONE)
    assert replica.redis.xlen("lm:usage") == 1
    assert replica.redis.keys(f"*{job.id}") == []


async def test_a_job_that_waits_is_taken_out_of_its_queue(dispatcher, replica):
    stream = await submit(dispatcher, "key:1")
    reviewing.lost.add("key:1")
    announce(replica.redis, ["key:1"])
    assert [event.code for event in await read(stream)] == [ErrorCode.KEY_REVOKED]
    await until(lambda: not replica.redis.zcard("lm:wait:chat"))
    await stream.close()


async def test_a_lost_message_costs_a_moment(dispatcher, replica, monkeypatch):
    monkeypatch.setattr(rights, "REVIEW_SECONDS", 0.02)
    ended = asyncio.Event()
    leave = dispatcher.rights.follow("key:5", ended.set)
    stream = await submit(dispatcher, "key:1")
    await until(lambda: frozenset({"key:1", "key:5"}) in reviewing.asked)
    reviewing.lost.update(("key:1", "key:5"))
    assert [event.code for event in await read(stream)] == [ErrorCode.KEY_REVOKED]
    await asyncio.wait_for(ended.wait(), PATIENCE_SECONDS)
    leave()
    await stream.close()
    # With nothing open nobody is asked about.
    await until(lambda: dispatcher.rights._is_idle)
    num_asked = len(reviewing.asked)
    await asyncio.sleep(0.05)
    assert len(reviewing.asked) == num_asked


@pytest.mark.parametrize("is_durable", [False, True])
async def test_what_is_read_with_a_token_ends_with_it_and_durable_work_goes_on(
    dispatcher, replica, monkeypatch, is_durable
):
    monkeypatch.setattr(rights, "REVIEW_SECONDS", 0.02)
    stream = await submit(dispatcher, "key:1", is_durable=is_durable)
    other = await submit(dispatcher, "key:1")
    stream.reader_ends_at = time.time() + 0.05
    replica.take(), replica.take()
    [end] = await read(stream)
    assert end.code == ErrorCode.TOKEN_EXPIRED
    await stream.close()
    stopped = set() if is_durable else {stream.job.id.encode()}
    await until(lambda: replica.redis.smembers("lm:cancel:chat-1") == stopped)
    assert not other.is_ended
    await other.close()


async def test_nothing_ends_by_a_message_alone(dispatcher, replica, monkeypatch):
    stream = await submit(dispatcher, "key:1")
    replica.redis.publish(RIGHTS_CHANNEL, b"no JSON")
    announce(replica.redis, ["key:1"])
    await until(lambda: any("key:1" in owners for owners in reviewing.asked))
    await asyncio.sleep(0.02)
    assert not stream.is_ended
    await stream.close()


async def test_a_review_that_fails_is_tried_again(dispatcher, replica, monkeypatch, settings):
    monkeypatch.setattr(rights, "REVIEW_SECONDS", 0.02)
    failures = [OSError("away")]

    async def review(owners):
        if failures:
            raise failures.pop()
        return owners

    monkeypatch.setattr(reviewing, "review", review)
    stream = await submit(dispatcher, "key:1")
    assert [event.code for event in await read(stream)] == [ErrorCode.KEY_REVOKED]
    assert not failures
    assert dispatcher.trouble == ""
    await stream.close()


async def test_wrong_keys_are_counted_by_place(dispatcher, replica):
    counts = [await dispatcher.wrong_keys.count(place) for place in ("a", "a", "b")]
    assert [number for number, _ in counts] == [1, 2, 1]
    assert all(30 < seconds <= 60 for _, seconds in counts)
    assert replica.redis.ttl("lm:wrong:a") > 0
