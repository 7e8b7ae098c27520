"""The unmodified anthropic client, doing what its users do."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.live import LiveLlamero

pytestmark = pytest.mark.model
HI: Any = [{"role": "user", "content": "Hi"}]
# The client has no argument for it any more, but sends what it is given.
GREEDY = {"temperature": 0}
WEATHER: Any = {
    "name": "get_weather",
    "description": "Tell the weather of a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


@pytest.fixture(scope="module")
def claude(live_llamero: LiveLlamero) -> Iterator[anthropic.Anthropic]:
    """The client."""
    options: Any = {"api_key": live_llamero.api_key, "max_retries": 0}
    with anthropic.Anthropic(base_url=live_llamero.base_url, **options) as made:
        yield made


def test_a_message_is_answered_whole_and_streamed(
    claude: anthropic.Anthropic, chat_model: str
) -> None:
    options: Any = {
        "model": chat_model,
        "max_tokens": 16,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": HI,
        "extra_body": GREEDY,
    }
    whole = claude.messages.create(**options)
    assert (whole.type, whole.role, whole.model) == ("message", "assistant", chat_model)
    assert whole.stop_reason in ("end_turn", "max_tokens")
    (block,) = whole.content
    assert isinstance(block, anthropic.types.TextBlock)
    assert 1 <= whole.usage.output_tokens <= 16
    assert whole._request_id
    with claude.messages.stream(**options) as stream:
        text = "".join(stream.text_stream)
        last = stream.get_final_message()
    assert text == block.text
    assert (last.stop_reason, last.usage.output_tokens) == (
        whole.stop_reason,
        whole.usage.output_tokens,
    )
    read = last.usage.cache_read_input_tokens or 0
    assert read > 0
    counted = claude.messages.count_tokens(model=chat_model, system=options["system"], messages=HI)
    assert counted.input_tokens == last.usage.input_tokens + read


def test_a_stop_sequence_is_told(claude: anthropic.Anthropic, chat_model: str) -> None:
    said = claude.messages.create(
        model=chat_model,
        max_tokens=40,
        messages=[{"role": "user", "content": "Count to three."}],
        stop_sequences=["two END"],
        extra_body={"grammar": 'root ::= "one two END three"'},
    )
    assert (said.stop_reason, said.stop_sequence) == ("stop_sequence", "two END")
    (block,) = said.content
    assert isinstance(block, anthropic.types.TextBlock)
    assert block.text == "one "


def test_an_answer_goes_on_from_its_beginning(claude: anthropic.Anthropic, chat_model: str) -> None:
    messages: Any = [
        {"role": "user", "content": "What is the capital of France?"},
        {"role": "assistant", "content": "The capital of France is"},
    ]
    said = claude.messages.create(
        model=chat_model, max_tokens=4, messages=messages, extra_body=GREEDY
    )
    (block,) = said.content
    assert isinstance(block, anthropic.types.TextBlock)
    assert "Paris" in block.text


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_tool_is_called_and_its_result_is_taken(
    claude: anthropic.Anthropic, chat_model: str, is_streamed: bool
) -> None:
    options: Any = {
        "model": chat_model,
        "max_tokens": 60,
        "extra_body": GREEDY,
        "tools": [WEATHER],
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    }
    forced = options | {"tool_choice": {"type": "tool", "name": "get_weather"}}
    if is_streamed:
        with claude.messages.stream(**forced) as stream:
            said = stream.get_final_message()
    else:
        said = claude.messages.create(**forced)
    assert said.stop_reason == "tool_use"
    call = said.content[-1]
    assert isinstance(call, anthropic.types.ToolUseBlock)
    assert (call.name, [*call.input]) == ("get_weather", ["city"])
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "Sunny."}
    options["messages"] += [said.to_param(), {"role": "user", "content": [result]}]
    options["tool_choice"] = {"type": "none"}
    answer = claude.messages.create(**options)
    assert answer.content[0].type == "text"


def test_models_are_listed(claude: anthropic.Anthropic, chat_model: str) -> None:
    models = list(claude.models.list(limit=1))
    assert chat_model in [model.id for model in models]
    assert claude.models.retrieve(chat_model).display_name


def test_errors_become_the_clients_own(claude: anthropic.Anthropic, chat_model: str) -> None:
    options: Any = {"model": chat_model, "max_tokens": 1, "messages": HI}
    with pytest.raises(anthropic.NotFoundError) as missing:
        claude.messages.create(**options | {"model": "no-such-model"})
    assert (missing.value.type, missing.value.error_code) == ("not_found_error", "model_not_found")
    assert missing.value.request_id
    with pytest.raises(anthropic.BadRequestError) as wrong:
        claude.messages.create(**options | {"messages": []}, stream=True)
    assert wrong.value.type == "invalid_request_error"
    with pytest.raises(anthropic.AuthenticationError):
        claude.with_options(api_key="llm_wrong").messages.create(**options)
    long: Any = [{"role": "user", "content": "word " * 9000}]
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        claude.messages.create(**options | {"messages": long}, stream=True)
