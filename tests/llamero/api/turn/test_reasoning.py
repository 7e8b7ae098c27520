"""Reasoning before an answer, cut at every place."""

import pytest

from inference.text.reasoning_counter import make_counter
from llamero.api.turn import TurnFormat
from llamero.api.turn.reasoning_styles import find_reasoning_style
from tests.llamero.api.turn.reading import (
    HARMONY,
    THINK,
    TOOLS,
    calls_of,
    cuts,
    read,
    thoughts_of,
    words_of,
)

CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


def thinking(**changes: object) -> TurnFormat:
    return TurnFormat(reasoning=THINK, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "is_open", "thoughts", "words"),
    [
        ("<think>\nI see.\n</think>\n\nHi there\n", False, "I see.", "Hi there\n"),
        ("I see.\n</think>\n\nHi", True, "I see.", "Hi"),
        ("<think>\n\n</think>\n\nHi", False, "", "Hi"),
        ("\n<think>a <b> </thin </think>Hi", False, "a <b> </thin", "Hi"),
        ("Hi <think>no</think>", False, "", "Hi <think>no</think>"),
        ("<thin", False, "", "<thin"),
        ("  Hi", False, "", "  Hi"),
        ("I see", True, "I see", ""),
        ("<think>\nI see.\n</think>\n\nHi", True, "I see.", "Hi"),
        ("<thin", True, "<thin", ""),
        ("", True, "", ""),
    ],
)
def test_reasoning_is_told_apart(text: str, is_open: bool, thoughts: str, words: str) -> None:
    for parts in cuts(text) if text else [[""]]:
        pieces = read(thinking(is_reasoning_open=is_open), parts)
        assert (thoughts_of(pieces), words_of(pieces)) == (thoughts, words)


def test_reasoning_may_stay_in_the_words() -> None:
    text = "<think>\nI see.\n</think>\n\nHi"
    for parts in cuts(text):
        pieces = read(thinking(is_reasoning_apart=False), parts)
        assert (thoughts_of(pieces), words_of(pieces)) == ("", text)


@pytest.mark.parametrize("is_apart", [True, False])
def test_marks_of_calls_within_reasoning_are_no_calls(is_apart: bool) -> None:
    turn = thinking(call_style="hermes", tools=TOOLS, is_reasoning_apart=is_apart)
    text = f"<think>Shall I write {CALL}?</think>\n{CALL}"
    for parts in cuts(text):
        pieces = read(turn, parts)
        assert calls_of(pieces) == [("now", "{}")]
        assert (thoughts_of(pieces) or words_of(pieces)).count(CALL) == 1


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        (thinking(), "<think>I see.</think>Hi"),
        (thinking(is_reasoning_open=True), "I see.</think>Hi"),
        (thinking(), "<thin air"),
        (TurnFormat(reasoning=HARMONY), "<|channel|>analysis<|message|>I see.<|end|>"),
        (
            TurnFormat(reasoning=HARMONY),
            "<|channel|>analysis to=functions.none <|message|>{}<|end|>",
        ),
        (TurnFormat(reasoning=HARMONY), "<|channel|>final<|message|>Hi"),
    ],
)
def test_tokens_are_counted_where_there_is_reasoning(turn: TurnFormat, text: str) -> None:
    assert turn.reasoning_marks is not None
    for parts in cuts(text):
        counter = make_counter(turn.reasoning_marks)
        for part in parts:
            counter.feed(part)
        assert (counter.num_tokens > 0) == bool(thoughts_of(read(turn, parts)))


def test_marks_around_an_answer_are_dropped() -> None:
    style = find_reasoning_style("<think></think><response></response>")
    text = "<think>I see.</think><response>Hi</response>"
    for parts in cuts(text):
        pieces = read(TurnFormat(reasoning=style), parts)
        assert (thoughts_of(pieces), words_of(pieces)) == ("I see.", "Hi")


def test_channels() -> None:
    text = (
        "<|channel|>analysis<|message|>I see.<|end|><|start|>assistant<|channel|>commentary"
        "<|message|>Wait. <|end|><|start|>assistant to=functions.now<|channel|>commentary json"
        '<|message|>{"a": 1}<|call|>'
    )
    turn = TurnFormat(reasoning=HARMONY, call_style="harmony", tools=TOOLS)
    for parts in cuts(text):
        pieces = read(turn, parts)
        assert (thoughts_of(pieces), words_of(pieces)) == ("I see.", "Wait. ")
        assert calls_of(pieces) == [("now", '{"a": 1}')]
    final = "<|channel|>final<|message|>Hi <b>"
    assert words_of(read(turn, list(final))) == "Hi <b>"
    assert words_of(read(turn, ["no channel"])) == "no channel"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n\nHi <b>", "\n\nHi <b>"),
        ("to", "to"),
        ("<|channel|>fin", ""),
        (" to=functions.n", ""),
        ("<|channel|>final<|message|>Hi<|end|><|start|>assis", "Hi"),
        ("<|channel|>final<|message|>Hi<|end|><|start|>assistant!", "Hi!"),
        ("<|channel|>final<|message|>Hi<|end|><|start|>assistant to=functions.n", "Hi"),
    ],
)
def test_what_has_no_channel_is_words(text: str, words: str) -> None:
    for parts in cuts(text):
        assert words_of(read(TurnFormat(reasoning=HARMONY), parts)) == words


def test_words_without_a_channel_are_told_as_they_come() -> None:
    reader = TurnFormat(reasoning=HARMONY).reader(0)
    assert words_of(reader.feed("Hello")) == "Hello"
    reader.feed("<|end|>")
    assert words_of(reader.feed("word " * 300))


@pytest.mark.parametrize(
    ("template", "opening"),
    [
        ("{% set c = c.split('</think>') %}<think>", "<think>"),
        ("[THINK]x[/THINK]", "[THINK]"),
        ("<|START_THINKING|><|END_THINKING|>", "<|START_THINKING|>"),
        ("<seed:think></seed:think>", "<seed:think>"),
        ("<|start|>assistant<|channel|>final<|message|>", "<|channel|>analysis<|message|>"),
    ],
)
def test_templates_tell_the_style(template: str, opening: str) -> None:
    style = find_reasoning_style(template)
    assert style is not None
    assert style.opening == opening
    assert find_reasoning_style("{{ messages }}") is None
