"""POST /v1/responses: whole, streamed, and with what came before."""

from typing import Any

import pytest

from inference.protocol.errors import ErrorCode
from inference.protocol.events import (
    Candidate,
    Done,
    Failed,
    FinishReason,
    TokenLogprob,
    Tokens,
)
from llamero.conversations.models import StoredResponse
from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import CONTEXT, FakeDispatcher, engine_error, say
from tests.llamero.api.responses.reading import accumulate, events_of, response_of, types_of

pytestmark = pytest.mark.usefixtures("rows")
URL = "/v1/responses"


async def test_a_turn_is_answered(dispatcher: FakeDispatcher, asked: dict[str, Any]) -> None:
    answer = await post(URL, asked | {"instructions": "Be kind.", "metadata": {"a": "b"}})
    response = response_of(answer)
    assert response.output_text == "Hello"
    assert (response.status, response.model, response.instructions) == (
        "completed",
        "smol",
        "Be kind.",
    )
    assert response.metadata == {"a": "b"}
    assert response.usage is not None
    assert response.usage.input_tokens == 5
    assert response.usage.input_tokens_details.cached_tokens == 2
    assert response.usage.output_tokens == 2
    assert response.usage.total_tokens == 7
    [question] = dispatcher.questions
    assert [(one["role"], one["content"]) for one in question.messages] == [
        ("system", "Be kind."),
        ("user", "Hi"),
    ]
    assert not dispatcher.jobs[0].is_durable
    assert dispatcher.streams[0].is_closed


async def test_a_stream_says_what_the_whole_answer_says(asked: dict[str, Any]) -> None:
    whole = response_of(await post(URL, asked))
    events = events_of(await post(URL, asked | {"stream": True}))
    assert types_of(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    response = accumulate(events)
    assert response.output_text == whole.output_text == "Hello"
    assert response.usage == whole.usage
    stored = response_of(await get(f"{URL}/{response.id}"))
    assert stored.model_dump() == events_response(events)


def events_response(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Give the response of the last event, as the client reads it."""
    from openai.types.responses import Response

    return Response.model_validate(events[-1]["response"]).model_dump()


async def test_what_the_limit_cuts_is_incomplete(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    dispatcher.script = lambda job: say("Hel", reason=FinishReason.LENGTH)
    response = response_of(await post(URL, asked | {"max_output_tokens": 1}))
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output[0].status == "incomplete"
    assert dispatcher.jobs[0].max_tokens == 1
    events = events_of(await post(URL, asked | {"stream": True}))
    assert types_of(events)[-1] == "incomplete"


async def test_nothing_said_is_an_empty_text(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    dispatcher.script = lambda job: [Done(FinishReason.EOS, 3, 0, 1)]
    response = response_of(await post(URL, asked))
    assert response.output[0].type == "message"
    assert response.output_text == ""


async def test_a_conversation_goes_on_by_id(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    first = response_of(await post(URL, asked | {"instructions": "Old."}))
    second = response_of(
        await post(URL, asked | {"input": "And?", "previous_response_id": first.id})
    )
    await post(URL, asked | {"input": "So?", "previous_response_id": second.id})
    assert [(one["role"], one["content"]) for one in dispatcher.questions[-1].messages] == [
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "And?"),
        ("assistant", "Hello"),
        ("user", "So?"),
    ]


async def test_what_is_not_stored_is_not_there(asked: dict[str, Any]) -> None:
    response = response_of(await post(URL, asked | {"store": False}))
    assert not await StoredResponse.objects.aexists()
    assert (await get(f"{URL}/{response.id}")).status == 404
    answer = await post(URL, asked | {"previous_response_id": response.id})
    assert answer.status == 400
    assert answer.error["code"] == "previous_response_not_found"
    assert answer.error["param"] == "previous_response_id"


async def test_a_server_may_store_nothing(settings: Any, asked: dict[str, Any]) -> None:
    settings.RESPONSE_RETENTION_DAYS = 0
    assert response_of(await post(URL, asked)).to_dict()["store"] is False
    assert not await StoredResponse.objects.aexists()
    refused = await post(URL, asked | {"background": True})
    assert (refused.status, refused.error["param"]) == (400, "background")


async def test_logprobs_are_told_where_they_are_asked_for(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    chosen = Candidate(5, "é".encode().decode("latin-1"), -0.5)
    entry = TokenLogprob(chosen, (chosen,))
    events = [Tokens("é", (5,), (entry,)), Done(FinishReason.EOS, 1, 0, 1)]
    dispatcher.script = lambda job: events
    body = asked | {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
    part = (await post(URL, body)).json()["output"][0]["content"][0]
    assert part["logprobs"][0]["token"] == "é"
    assert part["logprobs"][0]["top_logprobs"][0]["bytes"] == [195, 169]
    assert dispatcher.jobs[0].num_logprobs == 1
    told = events_of(await post(URL, body | {"stream": True}))
    delta = next(event for event in told if event["type"] == "response.output_text.delta")
    assert delta["logprobs"] == part["logprobs"]


async def test_errors_before_the_first_token_are_plain(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    dispatcher.script = lambda job: [Failed(ErrorCode.ENGINE_FAILED, "It broke.")]
    for stream in (False, True):
        answer = await post(URL, asked | {"stream": stream})
        assert (answer.status, answer.error["message"]) == (500, "It broke.")
    assert not await StoredResponse.objects.aexists()
    dispatcher.submit_error, dispatcher.num_accepted = engine_error(ErrorCode.QUEUE_FULL), 0
    assert (await post(URL, asked | {"background": True})).status == 503
    assert not await StoredResponse.objects.aexists()


async def test_a_later_failure_is_an_event_and_is_stored(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    failed = Failed(ErrorCode.ENGINE_FAILED, "It broke.")
    dispatcher.script = lambda job: [Tokens("Hel", (1,)), failed]
    events = events_of(await post(URL, asked | {"stream": True}))
    assert types_of(events)[-2:] == ["output_item.done", "failed"]
    response = events[-1]["response"]
    assert response["error"] == {"code": "server_error", "message": "It broke."}
    assert (await get(f"{URL}/{response['id']}")).json() == response


async def test_too_long_an_input_is_refused_or_cut(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    turns: list[dict[str, Any]] = [{"role": "developer", "content": "Stay."}]
    for number in range(20):
        turns.append({"role": "user", "content": f"Question {number}"})
        turns.append({"role": "assistant", "content": f"Answer {number}"})
    body = asked | {"input": [*turns, {"role": "user", "content": "Last"}]}
    refused = await post(URL, body)
    assert refused.status == 400
    assert (refused.error["code"], refused.error["param"]) == ("context_length_exceeded", "input")
    response_of(await post(URL, body | {"truncation": "auto"}))
    kept = dispatcher.questions[-1].messages
    assert kept[0]["content"] == "Stay."
    assert kept[1]["role"] == "user"
    assert kept[-1]["content"] == "Last"
    assert len(dispatcher.jobs[-1].prompt_tokens) <= CONTEXT * 3 // 4
    endless = await post(URL, asked | {"input": "x" * CONTEXT, "truncation": "auto"})
    assert endless.error["code"] == "context_length_exceeded"


async def test_input_is_counted(asked: dict[str, Any]) -> None:
    answer = await post(f"{URL}/input_tokens", asked)
    assert answer.json() == {"object": "response.input_tokens", "input_tokens": len("user:Hi\n")}
    first = response_of(await post(URL, asked))
    longer = await post(f"{URL}/input_tokens", asked | {"previous_response_id": first.id})
    assert longer.json()["input_tokens"] == len("user:Hi\nassistant:Hello\nuser:Hi\n")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].id"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": "1"}]},
            "input[0].call_id",
        ),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"model": None}, "model"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ],
)
async def test_what_is_wrong_is_named(
    asked: dict[str, Any], fields: dict[str, Any], param: str
) -> None:
    answer = await post(URL, asked | fields)
    assert answer.status == 400, answer.body
    assert answer.error["param"] == param


async def test_nulls_and_unknown_fields_change_nothing(asked: dict[str, Any]) -> None:
    names = ["instructions", "previous_response_id", "tools", "tool_choice", "text", "reasoning"]
    names += ["metadata", "store", "background", "include", "truncation", "user", "conversation"]
    body = asked | dict.fromkeys(names) | {"n": 3, "response_format": 5, "whatever": {}}
    assert response_of(await post(URL, body)).output_text == "Hello"


ADD = {
    "type": "function",
    "name": "add",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
    },
}


async def test_a_tool_is_called_and_answered(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    written = ('{"na', 'me": "add", "arguments"', ': {"a": 1}}')
    dispatcher.script = lambda job: say(*written)
    # The fake model has no template, so a call is plain JSON.
    body = asked | {"tools": [ADD], "tool_choice": "required"}
    response = response_of(await post(URL, body))
    [call] = response.output
    assert call.type == "function_call"
    assert (call.name, call.arguments, call.status) == ("add", '{"a": 1}', "completed")
    assert dispatcher.jobs[0].sampling.grammar
    events = events_of(await post(URL, body | {"stream": True}))
    assert accumulate(events).output[0].to_dict()["arguments"] == call.arguments
    dispatcher.script = lambda job: say("Two.")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "2"}
    follow = asked | {"input": [output], "previous_response_id": response.id, "tools": [ADD]}
    assert response_of(await post(URL, follow)).output_text == "Two."
    roles = [message["role"] for message in dispatcher.questions[-1].messages]
    assert roles[-3:] == ["user", "assistant", "tool"]


async def test_a_resumed_stream_calls_by_the_same_id(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    dispatcher.script = lambda job: say('{"name": "add", "arguments": {"a": 1}}')
    body = asked | {"tools": [ADD], "background": True, "stream": True}
    events = events_of(await post(URL, body))
    assert "function_call_arguments.done" in types_of(events)
    url = f"{URL}/{events[0]['response']['id']}?stream=true"
    assert events_of(await get(url)) == events
    dispatcher.jobs.clear()
    assert events_of(await get(f"{url}&starting_after=2")) == events[3:]
