"""Requests for a model that is not loaded: pings while it loads, then the answer or the reason."""

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import ModelFacts, ReplicaState
from llamero.api import loading, model_choice
from llamero.api.run import has_open_runs
from tests.llamero.api.asgi_client import get, post, start
from tests.llamero.api.fakes import FakeDispatcher, make_served, make_status

CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}
STREAMS = [
    ("/v1/chat/completions", {**CHAT, "stream": True}),
    ("/v1/completions", {"model": "smol", "prompt": "Hi", "stream": True}),
    ("/completion", {"model": "smol", "prompt": "Hi", "stream": True}),
]


class SleepingDispatcher(FakeDispatcher):
    """One whose models are loaded when the test says so, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.is_loaded = asyncio.Event()
        self.has_been_asked = asyncio.Event()
        self.failure: EngineError | None = None

    async def facts(self, deployment: str, *, waits: bool = True) -> ModelFacts:
        if not waits and not self.is_loaded.is_set():
            raise EngineError(ErrorCode.NO_READY_REPLICA, "No replica is ready.")
        self.has_been_asked.set()
        await self.is_loaded.wait()
        if self.failure:
            raise self.failure
        return await super().facts(deployment)


@pytest.fixture(autouse=True)
def sleeping(monkeypatch: pytest.MonkeyPatch) -> Iterator[SleepingDispatcher]:
    fake = SleepingDispatcher()
    status = make_status("smol", ReplicaState.LOADING)
    fake.statuses = (msgspec.structs.replace(status, progress=0.43),)
    monkeypatch.setattr("llamero.dispatch.get_dispatcher", lambda: fake)
    monkeypatch.setattr(loading, "QUEUE_SECONDS", 0.01)
    yield fake


@pytest.mark.parametrize(("path", "body"), STREAMS)
async def test_a_stream_shows_how_far_the_model_is_and_then_answers(
    sleeping: SleepingDispatcher, monkeypatch: pytest.MonkeyPatch, path: str, body: object
) -> None:
    monkeypatch.setattr(loading, "PATIENCE_SECONDS", 0.0)
    exchange = start("POST", path, body)
    await exchange.wait_for(b": loading progress=0.43\n\n")
    # A gateway that drains waits for it.
    assert has_open_runs()
    sleeping.is_loaded.set()
    answer = await exchange.finish()
    assert not has_open_runs()
    assert answer.status == 200
    assert b"Hel" in answer.body
    assert answer.body.count(b"Hel") == 1


async def test_a_stream_that_may_be_resumed_tells_its_id_while_the_model_loads(
    sleeping: SleepingDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE_SECONDS", 0.0)
    path, body = STREAMS[0]
    exchange = start("POST", path, body, headers={"X-Llamero-Resumable": "true"})
    await exchange.wait_for(b": loading progress=0.43\n\n")
    run = exchange.answer.headers["x-llamero-run"]
    sleeping.is_loaded.set()
    whole = await exchange.finish()
    again = await get(f"/v1/runs/{run}/events")
    assert again.data == whole.data


async def test_a_model_that_is_soon_there_answers_as_if_it_always_was(
    sleeping: SleepingDispatcher,
) -> None:
    exchange = start("POST", *STREAMS[0])
    await sleeping.has_been_asked.wait()
    sleeping.is_loaded.set()
    answer = await exchange.finish()
    assert b"loading" not in answer.body
    assert answer.data[-1] == "[DONE]"


async def test_a_whole_answer_waits_in_silence(sleeping: SleepingDispatcher) -> None:
    exchange = start("POST", "/v1/chat/completions", CHAT)
    await sleeping.has_been_asked.wait()
    assert not exchange.answer.status
    sleeping.is_loaded.set()
    assert (await exchange.finish()).json()["choices"][0]["message"]["content"] == "Hello"


async def test_a_model_that_cannot_be_loaded_is_503_with_the_reason(
    sleeping: SleepingDispatcher,
) -> None:
    sleeping.failure = EngineError(ErrorCode.NO_READY_REPLICA, "It failed: no memory.")
    for body in (CHAT, STREAMS[0][1]):
        exchange = start("POST", "/v1/chat/completions", body)
        await sleeping.has_been_asked.wait()
        sleeping.is_loaded.set()
        answer = await exchange.finish()
        sleeping.is_loaded.clear()
        sleeping.has_been_asked.clear()
        assert answer.status == 503
        assert answer.error["message"] == "It failed: no memory."
        assert "retry-after" in answer.headers


async def test_what_fails_after_the_first_ping_is_told_in_the_stream(
    sleeping: SleepingDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE_SECONDS", 0.0)
    sleeping.failure = EngineError(ErrorCode.NO_READY_REPLICA, "It failed: no memory.")
    exchange = start("POST", *STREAMS[0])
    await exchange.wait_for(b": loading")
    sleeping.is_loaded.set()
    answer = await exchange.finish()
    assert answer.status == 200
    assert [chunk["error"]["message"] for chunk in answer.chunks] == ["It failed: no memory."]


async def test_a_prompt_that_is_refused_after_loading_is_told_in_the_stream(
    sleeping: SleepingDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE_SECONDS", 0.0)
    exchange = start("POST", "/v1/completions", {**STREAMS[1][1], "prompt": "x" * 10_000})
    await exchange.wait_for(b": loading")
    sleeping.is_loaded.set()
    (chunk,) = (await exchange.finish()).chunks
    assert chunk["error"]["code"] == "context_length_exceeded"


async def test_a_client_that_leaves_while_the_model_loads_leaves_nothing(
    sleeping: SleepingDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE_SECONDS", 0.0)
    exchange = start("POST", *STREAMS[0])
    await exchange.wait_for(b": loading")
    await exchange.hang_up()
    sleeping.is_loaded.set()
    await asyncio.sleep(0.05)
    assert sleeping.jobs == []


async def test_looking_at_a_sleeping_model_wakes_nothing(
    sleeping: SleepingDispatcher, served: list[object]
) -> None:
    assert (await get("/props?model=smol")).status == 503
    served.insert(0, make_served("dozing", state="sleeping"))
    answer = await get("/props?model=dozing")
    assert answer.json()["is_sleeping"] is True
    assert not sleeping.has_been_asked.is_set()


async def test_a_server_whose_models_sleep_is_well(served: list[object]) -> None:
    assert (await get("/health", key=None)).status == 503
    served.append(make_served("dozing", state="sleeping"))
    model_choice.recent_lists.clear()
    assert (await get("/health", key=None)).status == 200
    assert (await post("/health", key=None)).status == 405
