"""Calls of tools in every style, cut at every place."""

import json

import pytest

from inference.text.tool_grammar import Function, make_tool_grammar
from llamero.api.turn import TurnFormat
from llamero.api.turn.call_styles import STYLE_OF_NAME, STYLES, CallStyle
from tests.llamero.api.turn.reading import HARMONY, TOOLS, calls_of, cuts, read, words_of
from tests.llamero.api.turn.sentences import Sentences
from tests.llamero.api.turn.written import WRITTEN

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "note": {"type": ["string", "null"]},
        "days": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["city"],
    "additionalProperties": False,
}
FUNCTIONS = (Function("get_weather", WEATHER), Function("now"))


def turn_of(style: str) -> TurnFormat:
    reasoning = HARMONY if style == "harmony" else None
    return TurnFormat(call_style=style, tools=TOOLS, id_seed="seed", reasoning=reasoning)


def test_each_style_is_tried() -> None:
    assert {style.name for style in STYLES} == {name for name, _, _ in WRITTEN}


@pytest.mark.parametrize(("style", "text", "calls"), WRITTEN, ids=[row[0] for row in WRITTEN])
def test_calls_are_read_wherever_they_are_cut(
    style: str, text: str, calls: list[tuple[str, str]]
) -> None:
    whole = read(turn_of(style), [text])
    assert calls_of(whole) == calls
    assert words_of(whole) == ("Sure." if "Sure." in text else "")
    for parts in cuts(text):
        assert read(turn_of(style), parts) == whole


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("seed", range(4))
def test_what_the_grammar_allows_is_read_as_calls(style: CallStyle, seed: int) -> None:
    made = make_tool_grammar(FUNCTIONS, style.syntax, is_required=True)
    text = Sentences(made.grammar, seed).make()
    pieces = read(turn_of(style.name), [text])
    assert words_of(pieces) == ""
    calls = calls_of(pieces)
    assert calls
    for name, arguments in calls:
        read_back = json.loads(arguments)
        assert isinstance(read_back, dict)
        assert name == "now" or isinstance(read_back["city"], str)
    assert read(turn_of(style.name), list(text)) == pieces


@pytest.mark.parametrize(("style", "text", "calls"), WRITTEN, ids=[row[0] for row in WRITTEN])
def test_a_text_that_breaks_off_shows_no_marks(
    style: str, text: str, calls: list[tuple[str, str]]
) -> None:
    marks = turn_of(style)
    for length in range(0, len(text), 3):
        pieces = read(marks, [text[:length]])
        told = calls_of(pieces)
        assert [name for name, _ in told] == [name for name, _ in calls][: len(told)]
        for (_, arguments), (_, whole) in zip(told, calls, strict=False):
            assert whole.startswith(arguments)
        if trigger := STYLE_OF_NAME[style].syntax.trigger:
            assert trigger not in words_of(pieces)


def test_what_only_looks_like_a_call_is_words() -> None:
    text = 'The <tool_call> tag <tool_call>\n{"name": "other"}</tool_call> and {"a": 1} '
    for parts in cuts(text):
        assert words_of(read(turn_of("hermes"), parts)) == text


@pytest.mark.parametrize("text", ['{"a": 1} is JSON', '{"a": ', "{", '[{"name": "now"}]', " {}\n"])
def test_json_that_is_no_call_is_words(text: str) -> None:
    for parts in cuts(text):
        assert words_of(read(turn_of("json"), parts)) == text


def test_arguments_in_plain_text_become_json() -> None:
    text = (
        '<tool_call>\n<function=get_weather>\n<parameter=city>\nSão "Paulo"\n\n</parameter>\n'
        "<parameter=note>\nnull\n</parameter>\n<parameter=days>\n[1, 2]\n</parameter>\n"
        "<parameter=odd>\nno json\n</parameter>\n</function>\n</tool_call>"
    )
    for parts in cuts(text):
        ((_, arguments),) = calls_of(read(turn_of("qwen-coder"), parts))
        assert json.loads(arguments) == {
            "city": 'São "Paulo"\n',
            "note": None,
            "days": [1, 2],
            "odd": "no json",
        }


def test_arguments_stream_as_they_come() -> None:
    reader = turn_of("qwen-coder").reader(0)
    told = reader.feed("<tool_call>\n<function=get_weather>\n<parameter=city>\nOsl")
    assert calls_of(told) == [("get_weather", '{"city": "Osl')]
    assert reader.has_calls
    assert not reader.is_whole


def test_ids_are_the_same_for_the_same_choice_and_no_other() -> None:
    def ids(choice: int, style: str = "hermes") -> list[str]:
        reader = turn_of(style).reader(choice)
        text = next(text for name, text, _ in WRITTEN if name == style)
        return [piece.id for piece in reader.feed(text) if hasattr(piece, "id")]

    assert ids(0) == ids(0)
    assert len({*ids(0), *ids(1)}) == 4
    assert all(call.startswith("call_") for call in ids(0))
    assert all(len(call) == 9 and call.isalnum() for call in ids(0, "mistral"))


PYTHON_VALUES = [
    (r"'it\'s \"so\"\n'", 'it\'s "so"\n'),
    (r'"\ud83d\ude00 \xe9 \u00e9 \q \ud83d"', "😀 é é q "),
    ("True", True),
    ("None", None),
    ("null", None),
    ("-1.5e3", -1500.0),
    ("[1, (2, 3), {'a': False, 1: [],}]", [1, [2, 3], {"a": False, "1": []}]),
    ("Oslo", "Oslo"),
    ("NaN", "NaN"),
    ("1.", "1."),
]


@pytest.mark.parametrize(("text", "value"), PYTHON_VALUES, ids=[row[0] for row in PYTHON_VALUES])
def test_values_in_python_become_json(text: str, value: object) -> None:
    call = f"[get_weather(city={text}, note = 'x',)]"
    for parts in cuts(call):
        ((name, arguments),) = calls_of(read(turn_of("python"), parts))
        assert name == "get_weather"
        assert json.loads(arguments) == {"city": value, "note": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "[1] is a footnote",
        "[other(a=1)]",
        "[get_weather]",
        "[",
        " []\n",
        "[get_weather (1",
        "now()",
    ],
)
def test_what_is_no_python_call_is_words(text: str) -> None:
    for parts in cuts(text):
        assert words_of(read(turn_of("python"), parts)) == text


def test_what_nests_too_deep_in_python_ends_the_call() -> None:
    pieces = read(turn_of("python"), [f"[get_weather(city={'[' * 5000}"])
    assert [name for name, _ in calls_of(pieces)] == ["get_weather"]
