"""POST /v1/chat/completions, whole and streamed."""

import asyncio
from typing import Any

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import (
    Candidate,
    Done,
    Failed,
    FinishReason,
    Started,
    TokenLogprob,
    Tokens,
)
from inference.protocol.replicas import RuntimeProfile
from llamero.api import async_view, sse
from llamero.api.early_refusals import EarlyRefusals
from llamero.api.run import fail_open_runs
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import post, start
from tests.llamero.api.fakes import CONTEXT, FakeDispatcher, engine_error, make_served, say

URL = "/v1/chat/completions"
HI = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}


async def test_a_chat_is_answered(dispatcher: FakeDispatcher) -> None:
    answer = await post(URL, HI)
    assert answer.status == 200
    document = answer.json()
    assert document["object"] == "chat.completion"
    assert document["model"] == "smol"
    assert document["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    usage = document["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (5, 2, 7)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 2
    assert answer.headers["x-request-id"].startswith("req_")
    (job,) = dispatcher.jobs
    assert job.owner == job.salt == "key:1"
    assert (job.sampling.temperature, job.sampling.top_p, job.max_tokens) == (1.0, 1.0, None)
    assert dispatcher.streams[0].is_closed


async def test_a_chat_is_streamed() -> None:
    answer = await post(URL, HI | {"stream": True, "stream_options": {"include_usage": True}})
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.data[-1] == "[DONE]"
    chunks = answer.chunks
    assert len({(c["id"], c["created"], c["model"], c["object"]) for c in chunks}) == 1
    assert chunks[0]["object"] == "chat.completion.chunk"
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"content": "Hel"},
        {"content": "lo"},
        {},
    ]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]]
    assert reasons == [None, None, None, "stop"]
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 2


async def test_the_fingerprint_is_that_of_what_is_loaded(served: list[ServedModel]) -> None:
    async def fingerprint(url: str = URL, **body: Any) -> str:
        return str((await post(url, HI | body)).json()["system_fingerprint"])

    first = await fingerprint()
    assert first.startswith("fp_")
    assert await fingerprint(seed=5, temperature=0) == first
    assert await fingerprint("/v1/completions", prompt="x") == first
    assert await fingerprint(model="org/big:1b") != first
    other = RuntimeProfile(context_length=CONTEXT, is_deterministic=True)
    served.append(make_served("sure", deployment="smol", profile=other))
    assert await fingerprint(model="sure") != first


async def test_nulls_are_absent_fields() -> None:
    names = ["max_tokens", "max_completion_tokens", "stop", "temperature", "top_p", "seed", "n"]
    names += ["logit_bias", "tools", "tool_choice", "response_format", "stream", "user", "logprobs"]
    answer = await post(URL, HI | dict.fromkeys(names))
    assert answer.status == 200
    assert len(answer.json()["choices"]) == 1


async def test_nulls_within_messages_are_absent_fields_too(dispatcher: FakeDispatcher) -> None:
    nothing = dict.fromkeys(("name", "refusal", "annotations", "audio", "function_call"))
    call = {"id": None, "type": None, "index": None, "function": {"name": "f", "arguments": None}}
    older = {"role": "assistant", "function_call": {"name": "f", "arguments": None}}
    messages = [
        HI["messages"][0],
        {"role": "assistant", "content": None, "tool_calls": [call]} | nothing,
        {"role": "tool", "content": "3", "tool_call_id": None, "name": "f"},
        {"role": "assistant", "content": "", "tool_calls": None} | nothing,
        older,
        {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": None}]},
    ]
    tool = {"name": "f", "description": None, "parameters": None, "strict": None}
    form = {"name": "x", "schema": {"type": "object"}, "strict": None, "description": None}
    fields = {
        "tools": [{"type": "function", "function": tool}],
        "response_format": {"type": "json_schema", "json_schema": form},
        "stream_options": {"include_usage": None},
        "stream": True,
    }
    answer = await post(URL, HI | {"messages": messages} | fields)
    assert answer.status == 200, answer.body
    asked = dispatcher.questions[0].messages
    assert asked[1]["tool_calls"][0]["function"] == {"name": "f", "arguments": ""}
    assert asked[2]["tool_call_id"] == asked[1]["tool_calls"][0]["id"]
    assert asked[3]["content"] == ""


async def test_choices_are_merged_and_have_seeds_of_their_own(dispatcher: FakeDispatcher) -> None:
    body = HI | {"n": 3, "seed": 7, "stream": True, "stream_options": {"include_usage": True}}
    answer = await post(URL, body)
    texts = {0: "", 1: "", 2: ""}
    ends = []
    for chunk in answer.chunks[:-1]:
        (choice,) = chunk["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "")
        if choice["finish_reason"]:
            ends.append(choice["index"])
    assert texts == {0: "Hello", 1: "Hello", 2: "Hello"}
    assert sorted(ends) == [0, 1, 2]
    assert answer.data.count("[DONE]") == 1
    usage = answer.chunks[-1]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (5, 6)
    seeds = [job.sampling.seed for job in dispatcher.jobs]
    assert seeds[0] == 7
    assert len(set(seeds)) == 3


async def test_held_back_text_makes_no_chunk(dispatcher: FakeDispatcher) -> None:
    events = [Tokens("", (1,)), Tokens("ab", (2,)), Done(FinishReason.LENGTH, 1, 0, 2)]
    dispatcher.script = lambda job: events
    answer = await post(URL, HI | {"stream": True})
    contents = [chunk["choices"][0]["delta"].get("content") for chunk in answer.chunks]
    assert contents == ["", "ab", None]
    assert answer.chunks[-1]["choices"][0]["finish_reason"] == "length"


async def test_logprobs_have_bytes_and_no_infinity(dispatcher: FakeDispatcher) -> None:
    chosen = Candidate(5, "é".encode().decode("latin-1"), -0.5)
    entry = TokenLogprob(chosen, (chosen, Candidate(6, "\xff", float("-inf"))))
    events = [Tokens("é", (5,), (entry,)), Done(FinishReason.EOS, 1, 0, 1)]
    dispatcher.script = lambda job: events
    whole = await post(URL, HI | {"logprobs": True, "top_logprobs": 2})
    streamed = await post(URL, HI | {"logprobs": True, "top_logprobs": 2, "stream": True})
    content = whole.json()["choices"][0]["logprobs"]["content"]
    assert content[0]["token"] == "é"
    assert content[0]["bytes"] == [195, 169]
    assert content[0]["top_logprobs"][1] == {
        "id": 6,
        "token": "\ufffd",
        "logprob": -9999.0,
        "bytes": [255],
    }
    assert streamed.chunks[1]["choices"][0]["logprobs"]["content"] == content
    assert dispatcher.jobs[0].num_logprobs == 2
    assert (await post(URL, HI | {"logprobs": True})).status == 200
    assert dispatcher.jobs[-1].num_logprobs == 0
    for nothing in (False, None):
        answer = await post(URL, HI | {"logprobs": nothing})
        assert answer.json()["choices"][0]["logprobs"] is None


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_before_any_byte_is_a_plain_error(
    dispatcher: FakeDispatcher, stream: bool
) -> None:
    dispatcher.script = lambda job: [Failed(ErrorCode.ENGINE_LOST, "Gone.", True)]
    answer = await post(URL, HI | {"stream": stream})
    assert answer.status == 503
    assert answer.error["code"] == "engine_lost"
    assert answer.error["type"] == "server_error"
    assert "retry-after" in answer.headers
    assert dispatcher.streams[0].is_closed


async def test_a_failure_after_the_first_byte_is_an_error_event(dispatcher: FakeDispatcher) -> None:
    released = asyncio.Event()
    failed = Failed(ErrorCode.ENGINE_LOST, "Gone.", True)
    dispatcher.script = lambda job: [Tokens("Hel", (1,)), released, failed]
    exchange = start("POST", URL, HI | {"stream": True})
    await exchange.wait_for(b"Hel")
    released.set()
    answer = await exchange.finish()
    assert "[DONE]" not in answer.data
    assert answer.chunks[-1]["error"]["type"] == "server_error"
    assert all(c["choices"][0]["finish_reason"] is None for c in answer.chunks[:-1])


async def test_a_server_that_stops_tells_its_clients(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [Tokens("Hel", (1,)), asyncio.Event()]
    streamed = start("POST", URL, HI | {"stream": True, "n": 2})
    whole = start("POST", URL, HI)
    await streamed.wait_for(b"Hel")
    while len(dispatcher.streams) < 3:
        await asyncio.sleep(0)
    fail_open_runs()
    answer = await streamed.finish()
    assert "[DONE]" not in answer.data
    assert answer.chunks[-1]["error"]["code"] == "engine_lost"
    assert (await whole.finish()).status == 503
    assert all(one.is_closed for one in dispatcher.streams)


async def test_each_event_is_sent_when_it_comes(dispatcher: FakeDispatcher) -> None:
    released = asyncio.Event()
    done = Done(FinishReason.EOS, 1, 0, 2)
    dispatcher.script = lambda job: [Tokens("one", (1,)), released, Tokens("two", (2,)), done]
    exchange = start("POST", URL, HI | {"stream": True})
    await exchange.wait_for(b'"one"')
    assert b"two" not in exchange.answer.body
    released.set()
    assert (await exchange.finish()).data[-1] == "[DONE]"


async def test_a_stream_that_waits_for_a_slot_tells_its_place(
    dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(sse, "QUEUE_SECONDS", 0.01)
    begun, released = asyncio.Event(), asyncio.Event()
    dispatcher.script = lambda job: [begun, Started(0, 0), released, *say("x")]
    exchange = start("POST", URL, HI | {"stream": True})
    await exchange.wait_for(b": queued position=1\n\n")
    dispatcher.streams[0].num_ahead, dispatcher.streams[0].wait_seconds = 2, 1.24
    await exchange.wait_for(b": queued position=3 wait=1.2\n\n")
    monkeypatch.setattr(sse, "PING_SECONDS", 0.01)
    begun.set()
    await exchange.wait_for(b": ping\n\n")
    released.set()
    assert (await exchange.finish()).data[-1] == "[DONE]"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_stops_all_its_jobs(
    dispatcher: FakeDispatcher, stream: bool
) -> None:
    dispatcher.script = lambda job: [Tokens("a", (1,)), asyncio.Event()]
    exchange = start("POST", URL, HI | {"stream": stream, "n": 2})
    while len(dispatcher.streams) < 2:
        await asyncio.sleep(0)
    if stream:
        await exchange.wait_for(b'"a"')
    await exchange.hang_up()
    assert all(one.is_closed for one in dispatcher.streams)


async def test_a_client_that_leaves_while_queued_stops_its_job(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [asyncio.Event()]
    exchange = start("POST", URL, HI | {"stream": True})
    while not dispatcher.streams:
        await asyncio.sleep(0)
    await exchange.hang_up()
    assert dispatcher.streams[0].is_closed
    assert exchange.answer.parts == []


async def test_a_queue_that_is_full_leaves_no_job_behind(dispatcher: FakeDispatcher) -> None:
    dispatcher.num_accepted = 1
    dispatcher.submit_error = engine_error(ErrorCode.QUEUE_FULL)
    answer = await post(URL, HI | {"n": 2})
    assert (answer.status, answer.error["code"]) == (503, "queue_full")
    assert int(answer.headers["retry-after"]) >= 1
    assert [one.is_closed for one in dispatcher.streams] == [True]


async def test_a_key_with_too_many_waiting_is_429_and_told_when_there_is_room(
    dispatcher: FakeDispatcher,
) -> None:
    dispatcher.num_accepted = 0
    dispatcher.submit_error = EngineError(ErrorCode.KEY_QUEUE_FULL, "Too many.", retry_after=6.2)
    answer = await post(URL, HI)
    assert (answer.status, answer.error["type"]) == (429, "rate_limit_error")
    assert answer.headers["retry-after"] == "7"


async def test_a_request_that_ends_replicas_is_500_and_not_tried_again(
    dispatcher: FakeDispatcher,
) -> None:
    dispatcher.num_accepted = 0
    dispatcher.submit_error = EngineError(ErrorCode.REQUEST_CRASHED_ENGINE, "It crashed.")
    answer = await post(URL, HI)
    assert (answer.status, answer.error["code"]) == (500, "request_crashed_engine")
    assert answer.headers["x-should-retry"] == "false"
    assert "retry-after" not in answer.headers


async def test_a_deadline_that_passes_in_the_queue_is_an_error(
    dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Failed(ErrorCode.DEADLINE_EXCEEDED, "Too late.", True)
    dispatcher.script = lambda job: [late]
    for stream in (False, True):
        answer = await post(URL, HI | {"stream": stream})
        assert (answer.status, answer.error["code"]) == (503, "deadline_exceeded")
        assert int(answer.headers["retry-after"]) >= 1
    monkeypatch.setattr(sse, "PATIENCE_SECONDS", 0.0)
    passes = asyncio.Event()
    dispatcher.script = lambda job: [passes, late]
    exchange = start("POST", URL, HI | {"stream": True})
    await exchange.wait_for(b": queued position=")
    passes.set()
    answer = await exchange.finish()
    assert answer.chunks[-1]["error"]["code"] == "deadline_exceeded"
    assert b"[DONE]" not in answer.body


async def test_no_ready_replica_is_503(dispatcher: FakeDispatcher) -> None:
    dispatcher.facts_error = engine_error(ErrorCode.NO_READY_REPLICA)
    answer = await post(URL, HI | {"stream": True})
    assert (answer.status, answer.error["type"]) == (503, "unavailable_error")
    assert "retry-after" in answer.headers


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_longer_than_the_context_is_400(
    dispatcher: FakeDispatcher, stream: bool
) -> None:
    messages = [{"role": "user", "content": "x" * CONTEXT}]
    answer = await post(URL, HI | {"messages": messages, "stream": stream})
    assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
    assert answer.error["param"] == "messages"
    assert answer.error["n_ctx"] == CONTEXT
    assert answer.error["n_prompt_tokens"] > CONTEXT
    assert dispatcher.jobs == []


async def test_text_parts_become_one_text(dispatcher: FakeDispatcher) -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    messages: list[dict[str, Any]] = [
        {"role": "developer", "content": ""},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": [_TOOL_CALL]},
        {"role": "tool", "content": "3", "tool_call_id": "c1"},
    ]
    assert (await post(URL, HI | {"messages": messages})).status == 200
    asked = dispatcher.questions[0].messages
    assert asked[0] == {"role": "system", "content": ""}
    assert asked[1]["content"] == "one\ntwo"
    assert asked[2]["content"] == ""
    assert asked[2]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


_TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


async def test_json_mode_is_a_grammar(dispatcher: FakeDispatcher) -> None:
    answer = await post(URL, HI | {"response_format": {"type": "json_object"}})
    assert answer.status == 200
    assert "object ::= " in dispatcher.jobs[0].sampling.grammar


async def test_who_was_just_refused_is_refused_before_anything_is_rendered(
    dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(async_view, "early_refusals", EarlyRefusals(lambda: now))
    dispatcher.submit_error, dispatcher.num_accepted = engine_error(ErrorCode.KEY_QUEUE_FULL), 0
    first = await post(URL, HI)
    assert (first.status, len(dispatcher.questions)) == (429, 1)
    dispatcher.submit_error = None
    again = await post(URL, HI | {"stream": True, "temperature": "wrong"})
    assert (again.status, again.body) == (429, first.body)
    assert again.headers["retry-after"] == first.headers["retry-after"]
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert len(dispatcher.questions) == 1
    for url, changes, options in (
        (URL, {"model": "tiny"}, {}),
        (URL, {}, {"key": None}),
        (URL, {}, {"headers": {"idempotency-key": "1"}}),
        (f"{URL}?x=1", {}, {}),
    ):
        assert (await post(url, HI | changes, **options)).status in (200, 401)
    now = 0.21
    dispatcher.submit_error, dispatcher.num_accepted = engine_error(ErrorCode.KEY_QUEUE_FULL), 0
    num_asked = len(dispatcher.questions)
    assert [(await post(URL, HI)).status for _ in range(3)] == [429] * 3
    assert len(dispatcher.questions) == num_asked + 1
    now, dispatcher.submit_error = 0.42, None
    assert [(await post(URL, HI)).status for _ in range(3)] == [200] * 3
