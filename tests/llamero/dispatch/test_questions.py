"""Questions about text and about replicas are answered, refused or given up in time."""

import asyncio

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.text import Detokenize, Detokenized, Refused
from llamero.dispatch import questions, wakening
from tests.processes import PATIENCE_SECONDS


async def answer_one(replica, answer):
    replica.lane.reply(await take(replica), answer)


async def take(replica):
    """Wait for a question."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (request := await asyncio.to_thread(replica.lane.take, 1)) is None:
            pass
    return request


async def test_a_question_is_answered(dispatcher, replica):
    asking = asyncio.create_task(dispatcher.ask("chat", Detokenize(tokens=(1,))))
    await answer_one(replica, Detokenized(text="hello"))
    assert await asking == Detokenized(text="hello")


async def test_a_refusal_is_an_error_that_names_its_parameter(dispatcher, replica):
    asking = asyncio.create_task(dispatcher.ask("chat", Detokenize(tokens=(1,))))
    await answer_one(replica, Refused(code="invalid_token_id", message="no", param="tokens.0"))
    with pytest.raises(EngineError) as caught:
        await asking
    assert (caught.value.code, caught.value.param) == (ErrorCode.INVALID_TOKEN_ID, "tokens.0")


async def test_silence_is_an_error_after_the_timeout(dispatcher, replica):
    with pytest.raises(EngineError) as caught:
        await dispatcher.ask("chat", Detokenize(tokens=(1,)), timeout=0.1)
    assert caught.value.code is ErrorCode.NO_READY_REPLICA
    assert dispatcher._questions._pending == {}


async def test_it_is_asked_again_when_the_replicas_went_with_it(dispatcher, replica, monkeypatch):
    monkeypatch.setattr(questions, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(wakening, "UNCONTROLLED_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(wakening, "LOOK_SECONDS", 0.02)
    asking = asyncio.create_task(dispatcher.ask("chat", Detokenize(tokens=(1,)), timeout=60))
    await take(replica)
    replica.redis.zrem("lm:ready:chat", "chat-1")
    await asyncio.sleep(0.3)
    assert not asking.done()
    replica.beat()
    await answer_one(replica, Detokenized(text="hello"))
    assert await asking == Detokenized(text="hello")


async def test_facts_come_from_a_ready_replica(dispatcher, replica):
    assert (await dispatcher.facts("chat")).context_length == 512
    assert [status.replica for status in await dispatcher.replicas("chat")] == ["chat-1"]
    with pytest.raises(EngineError) as caught:
        await dispatcher.facts("other")
    assert caught.value.code is ErrorCode.NO_READY_REPLICA
