"""Requests wait for a replica as long as there is hope of one, and not longer."""

import asyncio
import time

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import Outlook, Prospect
from inference.protocol.text import Detokenize, Detokenized
from inference.relay.demand import DemandBoard, Lease
from llamero.dispatch import wakening
from tests.inference.relay.fakes import make_job
from tests.llamero.dispatch.reading import until
from tests.llamero.dispatch.test_questions import answer_one


@pytest.fixture
def board(replica):
    """A deployment that sleeps, and a controller that is at work."""
    replica.registry.remove(replica.name)
    assert Lease(replica.redis).hold()
    board = DemandBoard(replica.redis)
    board.publish({"chat": Outlook(prospect=Prospect.COMING)})
    return board


async def wait_for_use(board):
    await until(lambda: "chat" in board.used_at())


async def refusal_of(call, retry_after=None):
    with pytest.raises(EngineError) as caught:
        await call
    assert caught.value.code is ErrorCode.NO_READY_REPLICA
    assert caught.value.is_retryable
    assert caught.value.retry_after == retry_after
    return caught.value.message


async def test_a_job_wakes_a_sleeping_deployment_and_runs_when_it_is_ready(
    dispatcher, replica, board
):
    job = make_job(gateway=dispatcher.gateway_id)
    submitting = asyncio.create_task(dispatcher.submit(job, max_queue=1))
    await wait_for_use(board)
    assert not submitting.done()
    replica.beat()
    stream = await submitting
    assert replica.take() == job.id
    await stream.close()


async def test_no_more_wait_than_a_gateway_can_hold(dispatcher, replica, board, monkeypatch):
    monkeypatch.setattr(wakening, "MAX_WAITING", 2)
    waiting = [asyncio.create_task(dispatcher.facts("chat")) for _ in range(2)]
    await until(lambda: dispatcher._wakening._num_waiting["chat"] == 2)
    with pytest.raises(EngineError) as caught:
        await dispatcher.facts("chat")
    assert caught.value.code is ErrorCode.QUEUE_FULL
    replica.beat()
    await asyncio.gather(*waiting)
    assert not dispatcher._wakening._num_waiting


async def test_questions_and_facts_wait_too(dispatcher, replica, board):
    asking = asyncio.create_task(dispatcher.ask("chat", Detokenize(tokens=(1,))))
    learning = asyncio.create_task(dispatcher.facts("chat"))
    await wait_for_use(board)
    replica.beat()
    await answer_one(replica, Detokenized(text="hello"))
    assert await asking == Detokenized(text="hello")
    assert (await learning).context_length == 512


async def test_who_only_looks_wakes_nobody(dispatcher, board):
    assert await refusal_of(dispatcher.facts("chat", waits=False))
    assert board.used_at() == {}


async def test_a_deployment_that_failed_is_refused_at_once_with_the_reason(dispatcher, board):
    board.publish({"chat": Outlook(prospect=Prospect.HOPELESS, reason="Out of memory.")})
    message = await refusal_of(dispatcher.facts("chat"), retry_after=30)
    assert message == "This model cannot be used now: Out of memory."
    assert board.used_at() == {}


async def test_a_deployment_that_was_just_switched_on_is_waited_for(
    dispatcher, replica, board, monkeypatch
):
    monkeypatch.setattr(wakening, "LOOK_SECONDS", 0.05)
    board.publish({"chat": Outlook(prospect=Prospect.OFF, reason="It is switched off.")})
    learning = asyncio.create_task(dispatcher.facts("chat"))
    await wait_for_use(board)
    board.publish({"chat": Outlook(prospect=Prospect.COMING)})
    replica.beat()
    assert (await learning).context_length == 512


async def test_no_room_is_refused_when_it_lasts(dispatcher, board, monkeypatch):
    monkeypatch.setattr(wakening, "BLOCKED_SECONDS", 0.3)
    monkeypatch.setattr(wakening, "LOOK_SECONDS", 0.05)
    board.publish({"chat": Outlook(prospect=Prospect.BLOCKED, reason="No node has room.")})
    message = await refusal_of(dispatcher.facts("chat"), retry_after=30)
    assert "No node has room." in message


async def test_no_room_for_a_moment_is_no_reason_to_give_up(
    dispatcher, replica, board, monkeypatch
):
    monkeypatch.setattr(wakening, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(wakening, "BLOCKED_SECONDS", 60.0)
    board.publish({"chat": Outlook(prospect=Prospect.BLOCKED)})
    learning = asyncio.create_task(dispatcher.facts("chat"))
    await wait_for_use(board)
    board.publish({"chat": Outlook(prospect=Prospect.COMING)})
    replica.beat()
    assert (await learning).context_length == 512


async def test_patience_ends_with_the_deployments_and_with_the_deadline(
    dispatcher, board, monkeypatch
):
    monkeypatch.setattr(wakening, "LOOK_SECONDS", 0.05)
    board.publish({"chat": Outlook(prospect=Prospect.COMING, patience_seconds=0.1)})
    assert "in time" in await refusal_of(dispatcher.facts("chat"))
    board.publish({"chat": Outlook(prospect=Prospect.COMING)})
    job = make_job(gateway=dispatcher.gateway_id, deadline=1.0)
    assert "in time" in await refusal_of(dispatcher.submit(job, max_queue=1))
    assert not dispatcher._streams


async def test_without_a_controller_nobody_waits_for_long(dispatcher, replica):
    replica.registry.remove(replica.name)
    message = await refusal_of(dispatcher.facts("chat"), retry_after=30)
    assert "No control worker" in message


async def test_many_wait_with_one_look(dispatcher, replica, board, monkeypatch):
    looks = 0
    look = dispatcher._relay.wake

    async def count(deployment):
        nonlocal looks
        looks += 1
        return await look(deployment)

    monkeypatch.setattr(dispatcher._relay, "wake", count)
    began = time.monotonic()
    learning = [asyncio.create_task(dispatcher.facts("chat")) for _ in range(200)]
    await wait_for_use(board)
    await asyncio.sleep(0.1)
    assert looks <= 1 + (time.monotonic() - began) / wakening.SHARED_SECONDS
    replica.beat()
    assert len(await asyncio.gather(*learning)) == 200


async def test_a_caller_that_leaves_waits_no_more(dispatcher, board):
    job = make_job(gateway=dispatcher.gateway_id)
    submitting = asyncio.create_task(dispatcher.submit(job, max_queue=1))
    await wait_for_use(board)
    submitting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await submitting
    assert not dispatcher._streams


async def test_a_gateway_that_stops_sends_away_who_waits(dispatcher, board):
    waiting = asyncio.create_task(dispatcher.facts("chat"))
    await until(lambda: dispatcher.has_waiting)
    dispatcher.stop_waiting()
    with pytest.raises(EngineError, match="restarting") as refused:
        await waiting
    assert refused.value.is_retryable
    assert not dispatcher.has_waiting
