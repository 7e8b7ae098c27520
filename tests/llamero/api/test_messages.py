"""Anthropic's Messages API over a fake data plane: blocks, ends, usage, events."""

import json
from dataclasses import replace
from typing import Any

import pytest

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Failed, FinishReason, Started, Tokens
from llamero.api import chat
from llamero.api.turn import TurnFormat
from llamero.api.turn.calls import CallableTool
from llamero.api.turn.reasoning_styles import ReasoningStyle
from tests.llamero.api.asgi_client import Answer, get, post
from tests.llamero.api.fakes import CONTEXT, FakeDispatcher, engine_error, say

URL = "/v1/messages"
HI: dict[str, Any] = {
    "model": "smol",
    "max_tokens": 8,
    "messages": [{"role": "user", "content": "Hi"}],
}


def events_of(answer: Answer) -> list[dict[str, Any]]:
    """Give the documents of a stream, each of which is named by its type."""
    assert answer.headers["content-type"] == "text/event-stream"
    found = []
    for block in answer.body.decode().split("\n\n")[:-1]:
        if block.startswith(":"):
            continue
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        document = json.loads(lines["data"])
        assert lines["event"] == document["type"]
        found.append(document)
    return found


async def test_a_message_is_answered(dispatcher: FakeDispatcher) -> None:
    answer = await post(URL, HI | {"system": "Be kind."})
    message = answer.json()
    assert message.pop("id").startswith("msg_")
    assert message == {
        "type": "message",
        "role": "assistant",
        "model": "smol",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": len("system:Be kind.\nuser:Hi\n") - 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 2,
            "output_tokens": 2,
            "service_tier": "standard",
        },
    }
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    (job,) = dispatcher.jobs
    assert (job.max_tokens, job.sampling.temperature, job.sampling.top_p) == (8, 1.0, 1.0)


async def test_a_stream_has_anthropics_events_in_their_order() -> None:
    events = events_of(await post(URL, HI | {"stream": True}))
    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    message = events[0]["message"]
    assert (message["content"], message["stop_reason"], message["role"]) == ([], None, "assistant")
    assert message["usage"]["cache_read_input_tokens"] == 2
    assert events[1]["content_block"] == {"type": "text", "text": ""}
    assert [event["delta"]["text"] for event in events[3:5]] == ["Hel", "lo"]
    assert events[6]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert events[6]["usage"]["output_tokens"] == 2


END = Done(FinishReason.STOP, 5, 0, 1, stop_word="END")


@pytest.mark.parametrize(
    ("done", "reason", "sequence"),
    [
        (END, "stop_sequence", "END"),
        (Done(FinishReason.STOP, 5, 0, 1, stop_word="<end_of_call>"), "end_turn", None),
        (Done(FinishReason.LENGTH, 5, 0, 8), "max_tokens", None),
        (Done(FinishReason.LENGTH, 5, 0, 8, truncated=True), "max_tokens", None),
        (Done(FinishReason.LENGTH, 5, 0, 3, truncated=True), "model_context_window_exceeded", None),
    ],
)
async def test_an_end_has_its_reason(
    dispatcher: FakeDispatcher, done: Done, reason: str, sequence: str | None
) -> None:
    dispatcher.script = lambda job: [Started(0, 0), Tokens("x", (5,)), done]
    body = HI | {"stop_sequences": ["STOP", "END"]}
    message = (await post(URL, body)).json()
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, sequence)
    delta = events_of(await post(URL, body | {"stream": True}))[-2]["delta"]
    assert delta == {"stop_reason": reason, "stop_sequence": sequence}


async def test_no_tokens_warm_the_cache(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [Started(0, 0), Done(FinishReason.LENGTH, 5, 0, 0)]
    message = (await post(URL, HI | {"max_tokens": 0})).json()
    assert (message["content"], message["stop_reason"]) == ([], "max_tokens")
    assert len(dispatcher.jobs) == 1


async def test_an_answer_without_words_has_no_block(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: say()
    assert (await post(URL, HI)).json()["content"] == []
    types = [event["type"] for event in events_of(await post(URL, HI | {"stream": True}))]
    assert types == ["message_start", "message_delta", "message_stop"]


TURN = TurnFormat(
    reasoning=ReasoningStyle(opening="<think>", closing="</think>"),
    call_style="hermes",
    tools=(CallableTool(name="look"), CallableTool(name="go")),
    id_seed="x",
)
CALLS = (
    "<think>h",
    "m</think>I loo",
    'k.<tool_call>\n{"name": "look", "argum',
    'ents": {"at": "é"}}\n</tool',
    '_call>\n<tool_call>\n{"name": "go", "arguments": {}}\n</tool_call>',
)


@pytest.fixture
def calling(monkeypatch: pytest.MonkeyPatch, dispatcher: FakeDispatcher) -> None:
    """Have the model think and call tools."""
    prepare = chat.prepare_chat

    async def prepare_with_turn(**options: Any) -> chat.PreparedChat:
        prepared = await prepare(**options)
        settings = replace(prepared.settings, reasoning=TURN.reasoning_marks)
        return replace(prepared, turn=TURN, settings=settings)

    monkeypatch.setattr("llamero.api.anthropic.views.prepare_chat", prepare_with_turn)
    dispatcher.script = lambda job: say(*CALLS)


@pytest.mark.usefixtures("calling")
async def test_thoughts_and_calls_are_blocks_of_their_own() -> None:
    message = (await post(URL, HI)).json()
    thinking, text, look, go = message["content"]
    assert (thinking["type"], thinking["thinking"]) == ("thinking", "hm")
    assert thinking["signature"]
    assert text == {"type": "text", "text": "I look."}
    assert (look["type"], look["name"], look["input"]) == ("tool_use", "look", {"at": "é"})
    assert (go["name"], go["input"]) == ("go", {})
    assert look["id"].startswith("toolu_")
    assert look["id"] != go["id"]
    assert message["stop_reason"] == "tool_use"
    assert message["usage"]["output_tokens_details"]["thinking_tokens"] == 2


@pytest.mark.usefixtures("calling")
async def test_a_stream_of_blocks_is_the_whole_message() -> None:
    whole = (await post(URL, HI)).json()["content"]
    events = events_of(await post(URL, HI | {"stream": True}))
    assert assemble(events) == whole
    assert [event["index"] for event in events if event["type"] == "content_block_stop"] == [
        *range(4)
    ]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert sum(event["type"] == "ping" for event in events) == 1


@pytest.mark.usefixtures("calling")
async def test_hidden_thoughts_have_a_signature_and_no_words() -> None:
    body = HI | {"thinking": {"type": "adaptive", "display": "omitted"}}
    whole = (await post(URL, body)).json()["content"]
    assert (whole[0]["thinking"], bool(whole[0]["signature"])) == ("", True)
    assert assemble(events_of(await post(URL, body | {"stream": True}))) == whole


@pytest.mark.usefixtures("calling")
async def test_a_call_that_was_cut_off_is_not_to_be_made(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: say(*CALLS[:3], reason=FinishReason.LENGTH)
    message = (await post(URL, HI)).json()
    assert message["stop_reason"] == "max_tokens"
    assert message["content"][-1]["input"] == {}
    dispatcher.script = lambda job: say(*CALLS[:3])
    assert (await post(URL, HI)).json()["stop_reason"] == "end_turn"


def assemble(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the blocks of a stream together as a client does."""
    blocks: list[dict[str, Any]] = []
    inputs: dict[int, str] = {}
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            delta = dict(event["delta"])
            kind = delta.pop("type")
            assert event["index"] == len(blocks) - 1
            if kind == "input_json_delta":
                inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
            else:
                ((name, text),) = delta.items()
                blocks[-1][name] += text
    for index, text in inputs.items():
        blocks[index]["input"] = json.loads(text)
    return blocks


@pytest.mark.usefixtures("calling")
async def test_a_stream_is_gone_on_with_after_any_event() -> None:
    headers = {"x-llamero-resumable": "true"}
    answer = await post(URL, HI | {"stream": True}, headers=headers)
    # A comment stands before an event, with no empty line between.
    body = b"".join(line for line in answer.body.splitlines(True) if not line.startswith(b":"))
    events = [event for event in body.split(b"\n\n") if event]
    assert [event.split(b"\n")[0] for event in events] == [
        b"id: %d" % number for number in range(1, len(events) + 1)
    ]
    address = f"/v1/runs/{answer.headers['x-llamero-run']}/events"
    for place in (0, 3, len(events) - 1):
        rest = await get(address, headers={"last-event-id": str(place)} if place else {})
        assert rest.body == b"".join(event + b"\n\n" for event in events[place:])


async def test_prompts_are_counted_without_a_job(dispatcher: FakeDispatcher) -> None:
    body = {name: value for name, value in HI.items() if name != "max_tokens"}
    answer = await post(f"{URL}/count_tokens", body)
    assert answer.json() == {"input_tokens": len("user:Hi\n")}
    assert dispatcher.jobs == []


async def test_a_failure_after_the_first_word_is_an_error_event(dispatcher: FakeDispatcher) -> None:
    failed = Failed(ErrorCode.ENGINE_LOST, "Gone.", True)
    dispatcher.script = lambda job: [Started(0, 0), Tokens("x", (5,)), failed]
    *_, last = events_of(await post(URL, HI | {"stream": True}))
    assert (last["type"], last["error"]["type"]) == ("error", "api_error")
    assert last["request_id"]
    assert (await post(URL, HI)).status == 503


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (ErrorCode.QUEUE_FULL, 529, "overloaded_error"),
        (ErrorCode.NO_READY_REPLICA, 529, "overloaded_error"),
        (ErrorCode.KEY_QUEUE_FULL, 429, "rate_limit_error"),
        (ErrorCode.DEADLINE_EXCEEDED, 504, "timeout_error"),
        (ErrorCode.BROKER_UNAVAILABLE, 503, "api_error"),
        (ErrorCode.ENGINE_FAILED, 500, "api_error"),
    ],
)
async def test_failures_have_anthropics_words_and_statuses(
    dispatcher: FakeDispatcher, code: ErrorCode, status: int, kind: str
) -> None:
    dispatcher.num_accepted, dispatcher.submit_error = 0, engine_error(code)
    for stream in (False, True):
        answer = await post(URL, HI | {"stream": stream})
        document = answer.json()
        assert (answer.status, document["type"]) == (status, "error")
        assert document["error"]["type"] == kind
        assert document["error"]["details"]["error_code"] == code.value
        assert document["request_id"] == answer.headers["request-id"]
        assert ("retry-after" in answer.headers) == (status in (429, 503, 504, 529))


VERSION = {"anthropic-version": "2023-06-01"}


async def test_models_are_listed_in_pages() -> None:
    page = (await get("/v1/models?limit=1", headers=VERSION)).json()
    assert page == {
        "data": [
            {
                "type": "model",
                "id": "smol",
                "display_name": "smol",
                "created_at": "2023-11-14T22:13:20Z",
                "lifecycle": "active",
                "max_input_tokens": CONTEXT,
                "max_tokens": CONTEXT,
            }
        ],
        "has_more": True,
        "first_id": "smol",
        "last_id": "smol",
    }
    rest = (await get("/v1/models?after_id=smol", headers=VERSION)).json()
    assert [one["id"] for one in rest["data"]] == ["org/big:1b"]
    assert not rest["has_more"]
    before = (await get("/v1/models?before_id=org/big:1b&limit=5", headers=VERSION)).json()
    assert ([one["id"] for one in before["data"]], before["has_more"]) == (["smol"], False)
    assert (await get("/v1/models/org/big:1b", headers=VERSION)).json()["type"] == "model"


@pytest.mark.parametrize(
    ("url", "status", "kind"),
    [
        ("/v1/models?limit=0", 400, "invalid_request_error"),
        ("/v1/models?limit=²", 400, "invalid_request_error"),
        ("/v1/models?after_id=none", 400, "invalid_request_error"),
        ("/v1/models/none", 404, "not_found_error"),
    ],
)
async def test_a_wrong_question_for_models_is_told_in_anthropics_words(
    url: str, status: int, kind: str
) -> None:
    answer = await get(url, headers=VERSION)
    assert (answer.status, answer.json()["error"]["type"]) == (status, kind)
    assert (await get(url, headers=VERSION, key=None)).json()["type"] == "error"
