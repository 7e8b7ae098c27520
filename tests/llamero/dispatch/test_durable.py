"""A durable job goes on without its reader, and whoever owns it reads all of it elsewhere."""

import asyncio
import time

import msgspec
import pytest

from inference.protocol.errors import ErrorCode
from inference.relay import keys
from inference.relay.reaper import sweep
from llamero.dispatch import watcher
from llamero.dispatch.dispatcher import Cancellation, Dispatcher
from tests.inference.relay.fakes import DONE, make_token
from tests.inference.relay.test_reaper import sweep_for_long
from tests.llamero.dispatch.reading import follow, read
from tests.llamero.dispatch.test_streams import submit
from tests.processes import PATIENCE_SECONDS


@pytest.fixture
async def other_gateway(broker):
    dispatcher = Dispatcher(broker.url, publish_ticket=lambda deployment: None)
    yield dispatcher
    await asyncio.wait_for(dispatcher.close(), PATIENCE_SECONDS)


async def test_it_is_read_whole_from_another_gateway(dispatcher, other_gateway, replica):
    stream = await submit(dispatcher, is_durable=True)
    job = replica.take()
    replica.write(job, 1, make_token(1))
    assert await anext(follow(stream)) == make_token(1)
    await stream.close()
    replica.write(job, 2, make_token(2))
    assert replica.inbox.pending() == ()
    again = await other_gateway.attach(job, "alice")
    reading = asyncio.create_task(read(again))
    await asyncio.sleep(0.1)
    replica.write(job, 3, make_token(3), DONE)
    assert await reading == [make_token(1), make_token(2), make_token(3), DONE]
    await again.close()
    assert 3500 < replica.redis.ttl(keys.events_key(job)) <= 3600


async def test_only_its_owner_finds_it(dispatcher, replica):
    stream = await submit(dispatcher, is_durable=True)
    fleeting = await submit(dispatcher)
    assert await dispatcher.attach(stream.job.id, "bob") is None
    assert await dispatcher.attach("unknown", "alice") is None
    assert await dispatcher.attach(fleeting.job.id, "alice") is None


async def test_whoever_reads_it_reads_all_of_it(dispatcher, other_gateway, replica, monkeypatch):
    monkeypatch.setattr(watcher, "SILENT_SECONDS", 60.0)
    first = await submit(dispatcher, is_durable=True)
    job = replica.take()
    replica.write(job, 1, make_token(1))
    second = await dispatcher.attach(job, "alice")
    elsewhere = [await other_gateway.attach(job, "alice") for _ in range(2)]
    await elsewhere.pop().close()
    replica.write(job, 2, make_token(2), DONE)
    for stream in (first, second, *elsewhere):
        assert await read(stream) == [make_token(1), make_token(2), DONE]
        await stream.close()
    assert not dispatcher._streams and not other_gateway._streams


async def test_too_many_readers_send_the_first_one_away(dispatcher, replica, monkeypatch):
    monkeypatch.setattr("llamero.dispatch.dispatcher.MOST_READERS", 2)
    first = await submit(dispatcher, is_durable=True)
    job = replica.take()
    others = [await dispatcher.attach(job, "alice") for _ in range(2)]
    [end] = await read(first)
    assert (end.code, "Too many" in end.message) == (ErrorCode.STREAM_DETACHED, True)
    replica.write(job, 1, DONE)
    for stream in others:
        assert await read(stream) == [DONE]


async def test_it_outlives_its_gateway(dispatcher, other_gateway, replica):
    stream = await submit(dispatcher, is_durable=True)
    job = replica.take()
    await dispatcher.close()
    replica.redis.zadd(keys.GATEWAYS, {dispatcher.gateway_id: 1})
    sweep_for_long(replica.redis)
    replica.beat()
    sweep(replica.redis)
    assert replica.inbox.pending() == ()
    again = await other_gateway.attach(job, stream.job.owner)
    replica.write(job, 1, DONE)
    assert await read(again) == [DONE]


async def test_it_ends_when_it_is_cancelled(dispatcher, other_gateway, replica):
    stream = await submit(dispatcher, is_durable=True)
    await stream.close()
    again = await other_gateway.attach(stream.job.id, "alice")
    await again.cancel()
    [end] = await read(again)
    assert end.finish_reason == "cancelled"


async def test_what_is_kept_of_a_run_is_its_owners(dispatcher, other_gateway, replica):
    deadline = time.time() + 60
    await dispatcher.keep_run("run_1", "alice", b"recipe", deadline)
    assert await other_gateway.find_run("run_1", "alice") == b"recipe"
    assert await other_gateway.find_run("run_1", "bob") is None
    assert await other_gateway.find_run("run_2", "alice") is None
    lasts = replica.redis.ttl(keys.kept_key("alice", "run_1"))
    assert lasts > keys.DURABLE_RETENTION_SECONDS + 60


async def test_any_gateway_stops_it_and_its_reader_hears_of_it(dispatcher, other_gateway, replica):
    stream = await submit(dispatcher, is_durable=True)
    assert await other_gateway.cancel_jobs([stream.job.id, "unknown"]) is Cancellation.STOPPED
    [end] = await read(stream)
    assert end.finish_reason == "cancelled"
    assert await other_gateway.cancel_jobs([stream.job.id]) is Cancellation.TOO_LATE
    assert await other_gateway.cancel_jobs(["nothing"]) is Cancellation.UNKNOWN


async def test_a_conversation_is_its_last_run_to_its_owner(dispatcher, other_gateway, replica):
    talks, others = dispatcher.conversations, other_gateway.conversations
    deadline = time.time() + 60
    streams = [await submit(dispatcher, is_durable=True) for _ in range(2)]
    for number, stream in enumerate(streams):
        document = msgspec.json.encode({"jobs": [stream.job.id], "recipe": "]" * 9000})
        await dispatcher.keep_run(f"run_{number}", "alice", document, deadline)
    assert await talks.go_on("talk", "alice", "run_0")
    assert not await others.go_on("talk", "alice", "run_1")
    [found] = await others.find(["talk", "unknown"], "alice")
    assert (found.id, found.run, found.ended_at) == ("talk", "run_0", 0)
    assert await others.find(["talk"], "bob") == []
    replica.write(replica.take(), 1, DONE)
    [found] = await others.find(["talk"], "alice")
    assert found.started_at - 2 < found.ended_at < time.time() + 2
    assert await others.go_on("talk", "alice", "run_1")
    assert (await talks.find(["talk"], "alice"))[0].run == "run_1"
    assert replica.redis.ttl(keys.conversation_key("alice", "talk")) > 3600
    await talks.forget("talk", "alice")
    assert await others.find(["talk"], "alice") == []
