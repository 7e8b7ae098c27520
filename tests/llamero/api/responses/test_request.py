"""What a request may hold: each wrong field is named, as is what would be right."""

from typing import Any

import pytest

from llamero.api.errors import describe_exception
from llamero.api.responses.ids import make_response_id
from llamero.api.responses.request import read_request

ASKED = {"model": "smol", "input": "Hi"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": None}, "input"),
        ({"input": 5}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"input": [{}]}, "input[0].type"),
        ({"input": [{"type": "computer_call"}]}, "input[0].type"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": ["user"], "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].type",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
            "input[0].content[0].text",
        ),
        ({"input": [{"role": "user", "content": "x", "id": 5}]}, "input[0].id"),
        ({"input": [{"type": "item_reference"}]}, "input[0].id"),
        (
            {"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]},
            "input[0].call_id",
        ),
        ({"input": [{"type": "reasoning", "summary": "x"}]}, "input[0].summary"),
        ({"instructions": 5}, "instructions"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": {"type": "function"}}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice.name"),
        ({"tool_choice": {"type": "file_search"}}, "tool_choice.type"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": True}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"include": ["everything"]}, "include[0]"),
        ({"include": [["x"]]}, "include[0]"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        (
            {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"not": {}}}}},
            "text.format",
        ),
        ({"text": {"verbosity": "loud"}}, "text.verbosity"),
        ({"reasoning": {"effort": "some"}}, "reasoning.effort"),
        ({"truncation": "sometimes"}, "truncation"),
        ({"metadata": {str(i): "x" for i in range(17)}}, "metadata"),
        ({"metadata": {"k": 5}}, "metadata.k"),
        ({"background": True, "store": False}, "background"),
        ({"stream_options": {}}, "stream_options"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(Exception) as raised:
        read_request(ASKED | fields, make_response_id())
    error = describe_exception(raised.value)
    assert (error.status, error.param) == (400, param)


def test_what_is_not_set_has_its_default() -> None:
    echo = read_request(ASKED, make_response_id()).echo
    assert echo["temperature"] == echo["top_p"] == 1.0
    assert echo["text"] == {"format": {"type": "text"}, "verbosity": "medium"}
    assert echo["reasoning"] == {"effort": None, "summary": None}
    assert echo["tool_choice"] == "auto"
    assert echo["truncation"] == "disabled"
    assert (echo["store"], echo["background"]) == (True, False)


def test_a_format_becomes_a_grammar() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "name": "x", "schema": schema, "strict": True}
    asked = read_request(ASKED | {"text": {"format": form}}, make_response_id())
    assert asked.turn.settings.sampling.grammar
    assert asked.echo["text"]["format"] == form
    free = read_request(ASKED | {"text": {"format": {"type": "text"}}}, make_response_id())
    assert not free.turn.settings.sampling.grammar


@pytest.mark.parametrize(
    ("effort", "is_enabled", "told"),
    [(None, None, ""), ("none", False, ""), ("minimal", True, "low"), ("xhigh", True, "high")],
)
def test_efforts_are_those_of_templates(
    effort: str | None, is_enabled: bool | None, told: str
) -> None:
    wish = read_request(
        ASKED | {"reasoning": {"effort": effort}}, make_response_id()
    ).turn.reasoning
    assert (wish.is_enabled, wish.effort) == (is_enabled, told)
