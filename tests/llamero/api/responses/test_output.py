"""What a turn is made of, as items and events; and items as the messages that templates know."""

from typing import Any

import pytest

from inference.protocol.events import Done, FinishReason, Tokens
from llamero.api.responses.fitting import drop_oldest
from llamero.api.responses.ids import make_item_id, make_response_id, read_item_id
from llamero.api.responses.items import read_input
from llamero.api.responses.messages import make_messages
from llamero.api.responses.output import Output
from llamero.api.responses.request import read_request
from llamero.api.responses.tools import read_tool_fields
from llamero.api.responses.writer import ResponseRecipe
from llamero.api.run import ChoiceEvent
from llamero.api.turn import (
    CallArguments,
    CallMode,
    CallStarted,
    Piece,
    Reasoning,
    Text,
    TurnFormat,
)
from llamero.errors import InvalidValue
from tests.llamero.api.asgi_client import Answer
from tests.llamero.api.responses.reading import accumulate, events_of, types_of

RESPONSE = "resp_" + "ab" * 20
PIECES: list[Piece] = [
    Reasoning("Hm"),
    Reasoning("."),
    Text("Let me "),
    Text("see."),
    CallStarted(0, "call_a", "add"),
    CallArguments(0, '{"a":'),
    CallArguments(0, "1}"),
    CallStarted(1, "call_b", "now"),
    CallArguments(1, "{}"),
]


def write(pieces: list[Piece], *, is_cut: bool = False) -> tuple[list[str], list[dict[str, Any]]]:
    """Give the types of the events of pieces that come one by one, and the items."""
    output = Output(RESPONSE)
    told = [name for piece in pieces for name, _ in output.take([piece])]
    told += [name for name, _ in output.finish(is_cut=is_cut)]
    return told, output.items


def test_each_kind_of_piece_is_an_item_of_its_own() -> None:
    told, items = write(PIECES)
    assert told == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert [item["type"] for item in items] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert items[0]["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert items[1]["content"][0]["text"] == "Let me see."
    assert (items[2]["call_id"], items[2]["arguments"]) == ("call_a", '{"a":1}')
    assert {item["status"] for item in items} == {"completed"}
    places = [read_item_id(item["id"]) for item in items]
    assert [place.index for place in places if place] == [0, 1, 2, 3]


def test_the_item_that_is_cut_is_incomplete() -> None:
    _, items = write(PIECES[:6], is_cut=True)
    assert [item["status"] for item in items] == ["completed", "completed", "incomplete"]
    assert items[-1]["arguments"] == '{"a":'


def test_a_turn_of_a_model_is_one_message_again() -> None:
    _, items = write(PIECES)
    results = read_input(
        [
            {"type": "function_call_output", "call_id": "call_a", "output": "2"},
            {
                "type": "function_call_output",
                "call_id": "call_b",
                "output": [{"type": "input_text", "text": "noon"}],
            },
            {"role": "user", "content": "And?"},
        ],
        RESPONSE,
    )
    messages = make_messages("Be kind.", items + results, [""] * 7)
    assert [message["role"] for message in messages] == [
        "system",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    turn = messages[1]
    assert (turn["content"], turn["reasoning_content"]) == ("Let me see.", "Hm.")
    assert [call["id"] for call in turn["tool_calls"]] == ["call_a", "call_b"]
    assert messages[3] == {"role": "tool", "tool_call_id": "call_b", "content": "noon"}


def test_a_call_that_was_cut_is_left_out_and_cannot_be_answered() -> None:
    _, items = write(PIECES[4:6], is_cut=True)
    answered = read_input(
        [{"type": "function_call_output", "call_id": "call_a", "output": "2"}], RESPONSE
    )
    assert make_messages("", items, ["x"]) == ()
    with pytest.raises(InvalidValue) as raised:
        make_messages("", items + answered, ["x", "input[0]"])
    assert raised.value.param == "input[0].call_id"


def test_what_the_system_says_first_is_one_message() -> None:
    items = read_input(
        [
            {"role": "developer", "content": "One."},
            {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {"role": "system", "content": "Two."},
        ],
        RESPONSE,
    )
    assert make_messages("Zero.", items, [""] * 3) == (
        {"role": "system", "content": "Zero.\n\nOne."},
        {"role": "user", "content": "a"},
        {"role": "system", "content": "Two."},
    )


def test_the_oldest_turns_go_first_and_whole() -> None:
    messages = (
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u" * 100},
        {"role": "assistant", "content": ""},
        {"role": "tool", "content": "t"},
        {"role": "user", "content": "v"},
        {"role": "assistant", "content": "w"},
        {"role": "user", "content": "x"},
    )
    assert drop_oldest(messages, 0.01) == messages[:1] + messages[4:]
    assert drop_oldest(messages, 0.9) == messages[:1] + messages[6:]
    assert drop_oldest(messages[:1] + messages[6:], 0.5) == messages[:1] + messages[6:]


def test_tools_are_read_flat_and_repeated() -> None:
    tool = {"type": "function", "name": "add", "parameters": None, "strict": None}
    other = {"type": "function", "name": "sub", "description": "Less.", "parameters": {}}
    named = read_tool_fields([tool, other], {"type": "function", "name": "sub"}, is_parallel=False)
    assert (named.use.mode, named.use.allowed) == (CallMode.REQUIRED, ("sub",))
    assert not named.use.is_parallel
    assert named.tools[0]["parameters"] == {"type": "object", "properties": {}}
    some = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "add"}]}
    chosen = read_tool_fields([tool, other], some, is_parallel=True)
    assert (chosen.use.mode, chosen.use.allowed) == (CallMode.AUTO, ("add",))
    with pytest.raises(InvalidValue):
        read_tool_fields([tool, tool], None, is_parallel=True)


def test_a_stream_of_all_pieces_is_what_the_client_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reader:
        has_calls = True

        def feed(self, text: str) -> list[Piece]:
            return [PIECES[int(text)]]

        def finish(self) -> list[Piece]:
            return []

    monkeypatch.setattr(TurnFormat, "reader", lambda self, choice: Reader())
    asked = read_request({"input": "Hi", "tools": [{"type": "function", "name": "add"}]}, RESPONSE)
    draft = {"id": RESPONSE, "object": "response", "created_at": 1, "model": "smol", "output": []}
    recipe = ResponseRecipe(draft=draft | asked.echo | {"status": "in_progress"}, turn=TurnFormat())
    writer = recipe.make_writer()
    body = writer.start()
    for number in range(len(PIECES)):
        body += writer.write(ChoiceEvent(0, Tokens(str(number), (1,))))
    body += (
        writer.write(ChoiceEvent(0, Done(FinishReason.EOS, 5, 0, 9, num_reasoning_tokens=2)))
        + writer.end()
    )
    events = events_of(Answer(200, {}, [body]))
    assert types_of(events)[-1] == "completed"
    response = accumulate(events)
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert response.usage is not None
    assert response.usage.output_tokens_details.reasoning_tokens == 2


def test_an_id_tells_its_place() -> None:
    response = make_response_id()
    place = read_item_id(make_item_id("fco", response, 300, is_output=False))
    assert place is not None
    assert (place.response_id, place.index, place.is_output) == (response, 300, False)
    assert read_item_id("msg_1") is None
