"""Who was just told that a queue is full hears it again at once, for a moment."""

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from llamero.dispatch import refusals
from llamero.dispatch.refusals import Refusals
from tests.llamero.dispatch.test_streams import submit


async def test_a_full_queue_is_told_again_without_asking(dispatcher, replica):
    streams = [await submit(dispatcher) for _ in range(10)]
    dispatcher.raise_if_full("chat", "alice")
    with pytest.raises(EngineError) as first:
        await submit(dispatcher)
    with pytest.raises(EngineError) as again:
        dispatcher.raise_if_full("chat", "alice")
    assert again.value.code is first.value.code is ErrorCode.QUEUE_FULL
    assert again.value.retry_after == first.value.retry_after
    dispatcher.raise_if_full("chat", "bob")
    dispatcher.raise_if_full("other", "alice")
    for stream in streams:
        await stream.close()


def test_it_lasts_a_moment_and_is_about_full_queues(monkeypatch):
    now = 0.0
    monkeypatch.setattr(refusals, "MAX_KEPT", 2)
    told = Refusals(lambda: now)
    told.note("chat", "alice", EngineError(ErrorCode.NO_READY_REPLICA, "none"))
    told.repeat("chat", "alice")
    told.note("chat", "alice", EngineError(ErrorCode.KEY_QUEUE_FULL, "full", retry_after=3.0))
    now = 0.19
    with pytest.raises(EngineError, match="full"):
        told.repeat("chat", "alice")
    now = 0.21
    told.repeat("chat", "alice")
    for owner in "abcde":
        told.note("chat", owner, EngineError(ErrorCode.QUEUE_FULL, "full"))
    assert len(told._told) <= 2
