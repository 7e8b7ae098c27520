"""What all streams have in common, each in the words of its address: signs of life and ends."""

import asyncio
import json
from typing import Any

import pytest

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Failed, FinishReason, Started, Tokens
from llamero.api import sse
from tests.llamero.api.asgi_client import Answer, post, start
from tests.llamero.api.fakes import FakeDispatcher, say

HI = [{"role": "user", "content": "Hi"}]
STREAMS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "smol", "messages": HI},
    "/chat/completions": {"messages": HI},
    "/v1/completions": {"model": "smol", "prompt": "x"},
    "/v1/messages": {"model": "smol", "messages": HI, "max_tokens": 5},
    "/v1/responses": {"model": "smol", "input": "x", "store": False},
    "/responses": {"input": "x", "store": False},
    "/completion": {"prompt": "x"},
}
DONE = Done(FinishReason.EOS, 5, 2, 2)
LATE = Failed(ErrorCode.DEADLINE_EXCEEDED, "Too late.", True)
LOST = Failed(ErrorCode.ENGINE_LOST, "Gone.", True)
every_stream = pytest.mark.parametrize("path", STREAMS)


def events_of(answer: Answer) -> list[str]:
    """Give the kind of each event, without comments: its name, or what its document holds."""
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    *blocks, rest = answer.body.decode().split("\n\n")
    assert rest == ""
    kinds = []
    for block in blocks:
        if block.startswith(":"):
            # A comment stands by itself, so that no reader takes it for a part of an event.
            assert "\n" not in block
            continue
        *names, data = block.split("\n")
        document = data.removeprefix("data: ")
        told = document if document == "[DONE]" else ",".join(json.loads(document))
        kinds.append(names[0].removeprefix("event: ") if names else told)
    return kinds


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that begin at once, and tell at once that they wait."""
    for name in ("PATIENCE_SECONDS", "QUEUE_SECONDS", "PING_SECONDS"):
        monkeypatch.setattr(sse, name, 0.01)


def test_no_proxy_waits_longer_than_a_stream_is_silent() -> None:
    assert max(sse.PATIENCE_SECONDS, sse.QUEUE_SECONDS, sse.PING_SECONDS) < 15


@every_stream
@pytest.mark.usefixtures("impatient")
async def test_comments_fill_the_silence_and_change_no_event(
    dispatcher: FakeDispatcher, path: str
) -> None:
    body = STREAMS[path] | {"stream": True}
    plain = events_of(await post(path, body))
    begun, released = asyncio.Event(), asyncio.Event()
    spoken = [Tokens("Hel", (1,)), released, Tokens("lo", (2,)), DONE]
    dispatcher.script = lambda job: [begun, Started(0, 0), *spoken]
    exchange = start("POST", path, body)
    await exchange.wait_for(b": queued position=1\n\n: queued position=1\n\n")
    begun.set()
    await exchange.wait_for(b": ping\n\n: ping\n\n")
    released.set()
    assert events_of(await exchange.finish()) == plain


@every_stream
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("failed", [LATE, LOST], ids=["late", "lost"])
async def test_a_stream_that_has_begun_ends_badly_with_an_error(
    dispatcher: FakeDispatcher, path: str, failed: Failed
) -> None:
    passes = asyncio.Event()
    dispatcher.script = lambda job: [passes, failed]
    exchange = start("POST", path, STREAMS[path] | {"stream": True})
    await exchange.wait_for(b": queued position=1")
    passes.set()
    answer = await exchange.finish()
    assert events_of(answer)[-1] in ("error", "response.failed")
    last = answer.chunks[-1]
    error = last.get("error") or last["response"]["error"]
    assert error["message"] == failed.message
    if path in ("/chat/completions", "/completion"):
        assert error["code"] == 503
    assert b"[DONE]" not in answer.body
    assert b'"stop"' not in answer.body


@every_stream
@pytest.mark.parametrize("failed", [LATE, LOST], ids=["late", "lost"])
async def test_a_stream_that_has_not_begun_is_a_plain_error(
    dispatcher: FakeDispatcher, path: str, failed: Failed
) -> None:
    dispatcher.script = lambda job: [failed]
    answer = await post(path, STREAMS[path] | {"stream": True})
    assert answer.status in (503, 504)
    assert answer.json()["error"]["message"] == failed.message
    assert int(answer.headers["retry-after"]) >= 1


@every_stream
async def test_an_answer_of_nothing_has_an_end(dispatcher: FakeDispatcher, path: str) -> None:
    dispatcher.script = lambda job: [Started(0, 0), Done(FinishReason.EOS, 5, 0, 0)]
    answer = await post(path, STREAMS[path] | {"stream": True})
    is_openai = "chat" in path or path == "/v1/completions"
    assert answer.data.count("[DONE]") == is_openai
    last = events_of(answer)[-1]
    assert last in ("[DONE]", "message_stop", "response.completed") or path == "/completion"
    if path == "/completion":
        assert (answer.chunks[-1]["stop"], answer.chunks[-1]["content"]) == (True, "")


@every_stream
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "text/html", "x"])
async def test_the_body_alone_decides_what_comes(
    dispatcher: FakeDispatcher, path: str, accept: str
) -> None:
    dispatcher.script = lambda job: say("x")
    for fields in ({}, {"stream": None}, {"stream": False}, {"stream": True}):
        answer = await post(path, STREAMS[path] | fields, headers={"accept": accept})
        kind = "text/event-stream" if fields.get("stream") else "application/json"
        assert (answer.status, answer.headers["content-type"]) == (200, kind)
