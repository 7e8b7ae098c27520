"""A job's events reach its reader in order, complete, to one end."""

import asyncio
import time

import pytest
from celery import Celery

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Failed, FinishReason
from inference.relay.keys import events_key, gateway_channel
from llamero.dispatch import get_dispatcher, stream, tickets, watcher
from tests.inference.relay.fakes import DONE, make_job, make_token
from tests.llamero.dispatch.conftest import Replica
from tests.llamero.dispatch.reading import read, until
from tests.processes import PATIENCE_SECONDS


async def submit(dispatcher, **changes):
    job = make_job(gateway=dispatcher.gateway_id, **changes)
    return await dispatcher.submit(job, max_queue=8)


async def settle(redis, job_id):
    """Wait until the keys of a job are gone."""
    await until(lambda: not redis.keys(f"*{job_id}"))


async def test_events_arrive_in_order_and_the_stream_ends(dispatcher, replica, tickets):
    job_stream = await submit(dispatcher)
    job = replica.take()
    replica.write(job, 1, make_token(1), make_token(2))
    replica.write(job, 3, DONE)
    assert await read(job_stream) == [make_token(1), make_token(2), DONE]
    assert job_stream.is_finished
    assert tickets == ["chat-1"]


async def test_others_are_woken_where_a_free_replica_does_not_take_its_job(
    dispatcher, replica, tickets, monkeypatch
):
    monkeypatch.setattr(watcher, "START_SECONDS", 0.02)
    Replica(replica.redis, "chat-2").beat()
    job_stream = await submit(dispatcher)
    await until(lambda: len(tickets) >= 2)
    assert set(tickets) == {"chat-1", "chat-2"}
    await job_stream.close()


async def test_the_key_count_is_flat_after_release(dispatcher, replica):
    num_keys = None
    for _ in range(20):
        job_stream = await submit(dispatcher)
        job = replica.take()
        replica.write(job, 1, make_token(1), DONE)
        await read(job_stream)
        await job_stream.close()
        await settle(replica.redis, job)
        num_keys = num_keys or replica.redis.dbsize()
        assert replica.redis.dbsize() <= num_keys
    assert not dispatcher._streams


async def test_a_lost_message_is_filled_from_the_stream(dispatcher, replica):
    job_stream = await submit(dispatcher)
    job = replica.take()
    # Stored, but never told: what a dropped message leaves behind.
    replica.redis.xadd(events_key(job), {"e": b'["t","t1 ",[1],[]]'}, id="0-1")
    replica.write(job, 1, make_token(1), make_token(2), DONE)
    assert await read(job_stream) == [make_token(1), make_token(2), DONE]


async def test_a_lost_last_message_is_found_after_silence(dispatcher, replica):
    job_stream = await submit(dispatcher)
    job = replica.take()
    replica.redis.xadd(events_key(job), {"e": b'["e","engine_failed","x",false,0,0]'}, id="0-1")
    assert await read(job_stream) == [Failed("engine_failed", "x")]


async def test_a_slow_reader_gets_everything_with_bounded_memory(dispatcher, replica, monkeypatch):
    monkeypatch.setattr(stream, "MAX_BUFFERED_EVENTS", 16)
    job_stream = await submit(dispatcher)
    job = replica.take()
    for number in range(1, 3001, 10):
        replica.write(job, number, *(make_token(n) for n in range(number, number + 10)))
        await asyncio.sleep(0)
    replica.write(job, 3001, DONE)
    await asyncio.sleep(0.3)
    assert len(job_stream._buffer) <= 16
    assert await read(job_stream) == [*(make_token(n) for n in range(1, 3001)), DONE]


async def test_garbage_on_the_channel_is_survived(dispatcher, replica):
    job_stream = await submit(dispatcher)
    replica.redis.publish(gateway_channel(dispatcher.gateway_id), b"[[not json")
    job = replica.take()
    replica.write(job, 1, DONE)
    assert await read(job_stream) == [DONE]


async def test_cancelling_a_running_job_tells_the_replica_and_reads_to_the_end(dispatcher, replica):
    job_stream = await submit(dispatcher)
    job = replica.take()
    replica.inbox.listen(0.01)
    await job_stream.cancel()
    assert await asyncio.to_thread(replica.inbox.listen, 4) == (job,)
    replica.write(job, 1, DONE)
    assert await read(job_stream) == [DONE]


async def test_cancelling_a_waiting_job_ends_it(dispatcher, replica):
    job_stream = await submit(dispatcher)
    await job_stream.cancel()
    [end] = await read(job_stream)
    assert end.finish_reason is FinishReason.CANCELLED
    assert replica.waiting.take("chat-1") is None


async def test_closing_before_the_end_stops_the_job_and_leaves_no_key(dispatcher, replica):
    job_stream = await submit(dispatcher)
    job = replica.take()
    await job_stream.close()
    await job_stream.close()
    await until(lambda: replica.inbox.pending() == (job,))
    replica.write(job, 1, make_token(1), DONE)
    assert replica.redis.keys(f"*{job}") == []


async def test_a_submitter_that_leaves_at_any_moment_leaves_no_job(dispatcher, replica):
    await dispatcher.facts("chat")
    for wait in range(40):
        job = make_job(gateway=dispatcher.gateway_id)
        task = asyncio.create_task(dispatcher.submit(job, max_queue=99))
        await asyncio.sleep(wait * 0.00005)
        if task.done():
            await task.result().close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await until(lambda: not len(replica.waiting) and not dispatcher._streams)


async def test_a_job_ends_at_its_deadline_even_if_nobody_ends_it(dispatcher, replica, monkeypatch):
    job_stream = await submit(dispatcher, deadline=time.time() + 600)
    replica.take()
    await asyncio.sleep(2 * watcher.TICK_SECONDS)
    assert not job_stream.is_ended
    monkeypatch.setattr(watcher, "DEADLINE_SLACK_SECONDS", -600)
    [end] = await read(job_stream)
    assert end.code == ErrorCode.DEADLINE_EXCEEDED


async def test_a_waiting_job_whose_ticket_was_lost_gets_another(dispatcher, replica, tickets):
    await submit(dispatcher)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(tickets) < 2:
            replica.beat()
            await asyncio.sleep(0.1)


async def test_refusals_come_back_as_errors(dispatcher, replica):
    job = make_job(gateway=dispatcher.gateway_id)
    with pytest.raises(EngineError) as caught:
        for _ in range(5):
            await dispatcher.submit(make_job(gateway=dispatcher.gateway_id), max_queue=1)
    assert caught.value.code is ErrorCode.QUEUE_FULL
    replica.registry.remove("chat-1")
    with pytest.raises(EngineError) as caught:
        await dispatcher.submit(job, max_queue=1)
    assert caught.value.code is ErrorCode.NO_READY_REPLICA


def test_a_ticket_is_a_celery_message_without_payload(broker, replica, monkeypatch):
    app = Celery("test", broker=f"redis+socket://{broker.socket}", set_as_current=False)
    monkeypatch.setattr(tickets, "app", app)
    tickets.send_ticket("chat-1")
    assert replica.redis.llen("gen.chat-1") == 1
    app.close()


def test_each_event_loop_has_its_own_dispatcher(settings, broker):
    settings.REDIS_URL = broker.url

    async def ask():
        dispatcher = get_dispatcher()
        assert get_dispatcher() is dispatcher
        await dispatcher.ping()
        return dispatcher.gateway_id

    assert asyncio.run(ask()) != asyncio.run(ask())


async def test_a_listener_takes_everything_without_a_task_of_its_own(
    dispatcher, replica, monkeypatch
):
    monkeypatch.setattr(stream, "MAX_BUFFERED_EVENTS", 16)
    job_stream = await submit(dispatcher)
    woken = asyncio.Event()
    job_stream.listen(woken.set)
    job = replica.take()
    events = [*(make_token(number) for number in range(1, 101)), DONE]
    replica.write(job, 1, *events)
    taken = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not job_stream.is_finished:
            await woken.wait()
            woken.clear()
            taken += job_stream.take()
    assert taken == events
