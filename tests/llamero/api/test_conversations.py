"""A stream comes back by the name its client chose, byte for byte, to its owner alone."""

import asyncio
from typing import Any

import pytest

from inference.protocol.events import Tokens
from llamero.api import sse
from tests.llamero.api.asgi_client import Answer, get, post, start
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.fakes import FakeDispatcher
from tests.llamero.api.test_resuming import CHAT, REQUESTS, speak

TALK = {"X-Conversation-Id": "chat-7::smol"}
STREAM = "/v1/stream?conv_id=chat-7::smol"


async def lookup(*ids: Any, **options: Any) -> Answer:
    return await post("/v1/streams/lookup", {"conversation_ids": list(ids)}, **options)


@pytest.mark.parametrize("name", REQUESTS)
async def test_it_goes_on_after_any_number_of_bytes(dispatcher: FakeDispatcher, name: str) -> None:
    dispatcher.script = speak
    url, body = REQUESTS[name]
    whole = await post(url, body, headers=TALK)
    assert whole.status == 200, whole.body
    assert whole.headers["x-llamero-run"].endswith(".chat-7::smol")
    assert dispatcher.jobs[0].is_durable
    for offset in (0, 1, 30, len(whole.body) - 1, len(whole.body)):
        rest = await get(f"{STREAM}&from={offset}")
        assert rest.body == whole.body[offset:]
    by_event = await get(STREAM, headers={"Last-Event-ID": "2"})
    assert by_event.body == whole.body[whole.body.index(b"id: 3\n") :]
    by_run = await get(f"/v1/runs/{whole.headers['x-llamero-run']}/events")
    assert by_run.body == whole.body


async def test_it_is_silent_where_others_ping(
    dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PING_SECONDS", 0.01)
    monkeypatch.setattr(sse, "QUEUE_SECONDS", 0.01)
    pause = asyncio.Event()
    dispatcher.script = lambda job: [Tokens("Hel", (1,)), pause, *speak(job)]
    exchange = start("POST", "/v1/chat/completions", CHAT, headers=TALK)
    await exchange.wait_for(b"Hel")
    await asyncio.sleep(0.1)
    pause.set()
    assert b": " not in (await exchange.finish()).body.replace(b"id: ", b"").replace(b"data: ", b"")


async def test_a_conversation_is_its_last_stream(dispatcher: FakeDispatcher) -> None:
    await post("/v1/chat/completions", CHAT, headers=TALK)
    dispatcher.script = speak
    second = await post("/v1/chat/completions", CHAT, headers=TALK)
    assert (await get(STREAM)).body == second.body


async def test_one_that_goes_on_is_no_other(dispatcher: FakeDispatcher) -> None:
    first = await post("/v1/chat/completions", CHAT, headers=TALK)
    dispatcher.conversations.is_busy = True
    refused = await post("/v1/chat/completions", CHAT, headers=TALK)
    assert refused.status == 409
    assert refused.error["code"] == "conversation_busy"
    assert refused.error["type"] == "invalid_request_error"
    assert refused.error["param"] == "X-Conversation-Id"
    assert dispatcher.streams[-1].is_cancelled
    assert dispatcher.streams[-1].is_closed
    assert (await get(STREAM)).body == first.body


async def test_only_its_owner_finds_it(dispatcher: FakeDispatcher) -> None:
    await post("/v1/chat/completions", CHAT, headers=TALK)
    other = await get(STREAM, key=LIMITED_KEY)
    unknown = await get("/v1/stream?conv_id=unknown")
    assert (other.status, other.body) == (unknown.status, unknown.body)
    assert unknown.error["code"] == "run_not_found"
    assert (await lookup("chat-7::smol", key=LIMITED_KEY)).json() == []
    gone = await start("DELETE", STREAM, key=LIMITED_KEY).finish()
    assert (gone.status, dispatcher.cancelled) == (204, [])


async def test_known_ones_are_looked_up(dispatcher: FakeDispatcher) -> None:
    await post("/v1/chat/completions", CHAT, headers=TALK)
    [found] = (await lookup("chat-7::smol", "unknown")).json()
    assert found == {
        "conversation_id": "chat-7::smol",
        "is_done": True,
        "started_at": 10,
        "completed_at": 20,
    }
    assert (await lookup()).json() == []


async def test_delete_stops_it_and_forgets_it(dispatcher: FakeDispatcher) -> None:
    await post("/v1/chat/completions", CHAT, headers=TALK)
    for _ in range(2):
        answer = await start("DELETE", STREAM).finish()
        assert (answer.status, answer.body) == (204, b"")
    assert dispatcher.cancelled == [dispatcher.jobs[0].id]
    assert (await get(STREAM)).status == 404


async def test_a_request_that_is_not_streamed_is_as_usual(dispatcher: FakeDispatcher) -> None:
    answer = await post("/v1/chat/completions", CHAT | {"stream": False}, headers=TALK)
    assert answer.status == 200
    assert not dispatcher.jobs[0].is_durable
    assert dispatcher.conversations.runs == {}


@pytest.mark.parametrize("name", ["a b", "a/b", "x" * 129, "é", "a\x00"])
async def test_a_name_that_is_none_is_refused(dispatcher: FakeDispatcher, name: str) -> None:
    answer = await post("/v1/chat/completions", CHAT, headers={"X-Conversation-Id": name})
    assert answer.status == 400
    assert answer.error["param"] == "X-Conversation-Id"
    assert dispatcher.jobs == []
    looked_up = await lookup("fine", name)
    assert (looked_up.status, looked_up.error["param"]) == (400, "conversation_ids[1]")


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("", "conv_id"),
        ("?conv_id=", "conv_id"),
        ("?conv_id=a&from=-1", "from"),
        ("?conv_id=a&from=1.5", "from"),
        ("?conv_id=a&from=%D9%A3", "from"),
        ("?conv_id=a&from=" + "9" * 40, "from"),
    ],
)
async def test_bad_places_are_named(dispatcher: FakeDispatcher, query: str, param: str) -> None:
    await post("/v1/chat/completions", CHAT, headers={"X-Conversation-Id": "a"})
    answer = await get("/v1/stream" + query)
    assert (answer.status, answer.error["param"]) == (400, param)


async def test_too_many_or_no_list_is_refused(dispatcher: FakeDispatcher) -> None:
    for ids in ([f"c{number}" for number in range(65)], "a", None):
        answer = await post("/v1/streams/lookup", {"conversation_ids": ids})
        assert (answer.status, answer.error["param"]) == (400, "conversation_ids")


async def test_bytes_of_several_choices_are_not_counted(dispatcher: FakeDispatcher) -> None:
    await post("/v1/chat/completions", CHAT | {"n": 2}, headers=TALK)
    assert (await get(f"{STREAM}&from=5")).error["param"] == "from"


async def test_more_bytes_than_there_are_are_refused(dispatcher: FakeDispatcher) -> None:
    whole = await post("/v1/chat/completions", CHAT, headers=TALK)
    answer = await get(f"{STREAM}&from={len(whole.body) + 1}")
    assert (answer.status, answer.error["param"]) == (400, "from")
    answer = await get(f"{STREAM}&from={len(whole.body)}")
    assert (answer.status, answer.body) == (200, b"")
