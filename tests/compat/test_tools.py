"""The openai client calls tools of a model whose template knows of none."""

import json
from typing import Any

import openai
import pytest

from tests.compat.conftest import RawClient

pytestmark = pytest.mark.model
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
NAMED: Any = {"type": "function", "function": {"name": "get_weather"}}
ASK: Any = [{"role": "user", "content": "Weather in Oslo?"}]


def body(model: str, **changes: Any) -> dict[str, Any]:
    common = {"model": model, "messages": ASK, "tools": [WEATHER], "temperature": 0}
    return common | {"max_tokens": 64} | changes


def test_a_named_tool_is_called_with_arguments_that_fit(
    client: openai.OpenAI, chat_model: str
) -> None:
    answer = client.chat.completions.create(**body(chat_model, tool_choice=NAMED))
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    calls: Any = choice.message.tool_calls
    assert all(call.function.name == "get_weather" for call in calls)
    assert len({call.id for call in calls}) == len(calls)
    for call in calls:
        arguments = json.loads(call.function.arguments)
        assert list(arguments) == ["city"]
        assert len(arguments["city"]) <= 20


def test_a_streamed_call_is_put_together_by_the_client(
    client: openai.OpenAI, chat_model: str
) -> None:
    options = body(chat_model, tool_choice="required", parallel_tool_calls=False)
    with client.chat.completions.stream(**options) as stream:
        kinds = [event.type for event in stream]
        (choice,) = stream.get_final_completion().choices
    assert "tool_calls.function.arguments.delta" in kinds
    assert choice.finish_reason == "tool_calls"
    calls: Any = choice.message.tool_calls
    assert [call.function.name for call in calls] == ["get_weather"]
    assert json.loads(calls[0].function.arguments).keys() == {"city"}


@pytest.mark.parametrize("choice", ["auto", "none", NAMED])
def test_a_stream_has_one_end_that_tells_whether_tools_were_called(
    raw: RawClient, chat_model: str, choice: Any
) -> None:
    options = body(chat_model, tool_choice=choice, stream=True, max_tokens=24)
    told = [
        chunk["choices"][0] for chunk in raw.send("POST", "/v1/chat/completions", options).chunks
    ]
    ends = [one["finish_reason"] for one in told if one["finish_reason"]]
    has_calls = any("tool_calls" in one["delta"] for one in told)
    assert len(ends) == 1
    assert told[-1]["delta"] == {}
    assert ends[0] in (("tool_calls", "length") if has_calls else ("stop", "length"))


def test_a_result_goes_back(client: openai.OpenAI, chat_model: str) -> None:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'},
    }
    turns: Any = [
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "<|im_end|>14 degrees"},
    ]
    answer = client.chat.completions.create(**body(chat_model, messages=turns, max_tokens=4))
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 60
