"""The server restarts, pauses, loses data; a replica dies. Nothing hangs, nothing doubles."""

import asyncio
import signal

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.text import Detokenize
from inference.relay import gateway
from inference.relay.keys import LEASE_SECONDS, REPLICAS, replica_key
from inference.relay.reaper import sweep
from llamero.dispatch import watcher
from llamero.dispatch.dispatcher import LINK_SECONDS, Dispatcher
from tests.inference.relay.fakes import DONE, make_job, make_token
from tests.llamero.dispatch.conftest import Replica
from tests.llamero.dispatch.reading import follow, read, until
from tests.llamero.dispatch.test_streams import submit
from tests.processes import PATIENCE_SECONDS


def test_calls_that_hang_are_given_up_in_time_for_three_seconds():
    assert max(gateway.CALL_SECONDS, LINK_SECONDS) <= 2.5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_restart_in_mid_stream_costs_no_event(broker, dispatcher, replica, number):
    job_stream = await submit(dispatcher)
    job = replica.take()
    replica.write(job, 1, make_token(1))
    assert await anext(follow(job_stream)) == make_token(1)
    broker.stop(number)
    replica.write(job, 2, make_token(2))
    await asyncio.sleep(0.1)
    broker.start()
    replica.beat()
    replica.write(job, 3, make_token(3), DONE)
    assert await read(job_stream) == [make_token(2), make_token(3), DONE]
    again = await submit(dispatcher)
    await again.close()


async def test_a_paused_server_is_soon_an_error(broker, dispatcher, replica, monkeypatch):
    job_stream = await submit(dispatcher)
    job = replica.take()
    monkeypatch.setattr(gateway, "CALL_SECONDS", 0.5)
    broker.send_signal(signal.SIGSTOP)
    try:
        calls = [
            dispatcher.submit(make_job(gateway=dispatcher.gateway_id), max_queue=8),
            dispatcher.ask("chat", Detokenize(tokens=(1,))),
            *(dispatcher.facts("chat") for _ in range(3)),
        ]
        async with asyncio.timeout(PATIENCE_SECONDS):
            results = await asyncio.gather(*calls, return_exceptions=True)
    finally:
        broker.send_signal(signal.SIGCONT)
    monkeypatch.undo()
    assert [error.code for error in results] == [ErrorCode.BROKER_UNAVAILABLE] * 5
    replica.beat()
    replica.write(job, 1, make_token(1), DONE)
    assert await read(job_stream) == [make_token(1), DONE]
    # The job whose submission timed out is taken back.
    await until(lambda: not len(replica.waiting))


async def test_an_outage_that_is_over_shortens_the_patience_with_no_other(dispatcher, replica):
    dispatcher._watcher._note_away(0.0)
    job_stream = await submit(dispatcher)
    await until(lambda: dispatcher._watcher._away_since is None)
    dispatcher._watcher._note_away(0.0)
    await until(lambda: dispatcher._watcher._away_since is None)
    replica.write(replica.take(), 1, DONE)
    assert await read(job_stream) == [DONE]


async def test_a_server_that_is_down_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("llamero.dispatch.dispatcher.LINK_SECONDS", 0.3)
    dispatcher = Dispatcher(f"unix://{tmp_path}/none", publish_ticket=print)
    for call in (
        dispatcher.submit(make_job(gateway=dispatcher.gateway_id), max_queue=8),
        dispatcher.ask("chat", Detokenize(tokens=(1,))),
        dispatcher.replicas(),
        dispatcher.ping(),
    ):
        with pytest.raises(EngineError) as caught:
            await call
        assert caught.value.code is ErrorCode.BROKER_UNAVAILABLE
    await dispatcher.close()


@pytest.fixture
def alarm(monkeypatch):
    """Gateways that soon suspect the worst."""
    monkeypatch.setattr(watcher, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(watcher, "SUSPECT_SECONDS", 0.5)


async def test_lost_data_is_an_end_and_not_a_wait(dispatcher, replica, alarm):
    job_stream = await submit(dispatcher)
    job = replica.take()
    replica.write(job, 1, make_token(1))
    replica.redis.flushall()
    end = (await read(job_stream))[-1]
    assert end.code == ErrorCode.ENGINE_LOST


async def test_another_replica_goes_on_for_a_lost_one_without_any_sweeper(
    dispatcher, replica, tickets, alarm
):
    job_stream = await submit(dispatcher)
    job = replica.take()
    replica.write(job, 1, make_token(1))
    replica.redis.delete(replica_key("chat-1"))
    other = Replica(replica.redis, "chat-2")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not len(replica.waiting) or len(tickets) < 2:
            other.beat()
            await asyncio.sleep(0.05)
    taken = other.waiting.take("chat-2")
    assert (taken.job.id, taken.job.attempt, taken.num_events) == (job, 2, 1)
    assert taken.job.emitted_tokens == make_token(1).token_ids
    assert replica.writer.write([(job, 1, 2, make_token(9))]) == (job,)
    other.writer.write([(job, 2, 2, make_token(2)), (job, 2, 3, DONE)])
    assert await read(job_stream) == [make_token(1), make_token(2), DONE]


async def test_a_pause_longer_than_a_lease_costs_no_job_of_a_live_replica(
    broker, dispatcher, replica
):
    job_stream = await submit(dispatcher)
    job = replica.take()
    # A lease that is about to end.
    replica.redis.expire(replica_key("chat-1"), 1)
    replica.redis.zincrby(REPLICAS, 1 - LEASE_SECONDS, "chat-1")
    sweep(replica.redis)
    broker.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(3)
    finally:
        broker.send_signal(signal.SIGCONT)
    assert sweep(replica.redis).queued_jobs == ()
    replica.beat()
    replica.write(job, 1, make_token(1), DONE)
    assert await read(job_stream) == [make_token(1), DONE]


async def test_a_gateway_whose_tasks_end_says_so(dispatcher, replica, monkeypatch):
    job_stream = await submit(dispatcher)
    await dispatcher.check_link()
    assert dispatcher.trouble == ""
    monkeypatch.setattr(watcher, "STUCK_SECONDS", -1.0)
    assert "were not looked after" in dispatcher.trouble
    dispatcher._tasks[1].cancel()
    await asyncio.wait(dispatcher._tasks[1:2])
    assert dispatcher.trouble == "a task that reads events has ended"
    await job_stream.close()
