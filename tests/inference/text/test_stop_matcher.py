"""Stop strings cut the text at their leftmost occurrence, whatever the tokens."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.text.stop_matcher import StopMatcher


def cut(text: str, stops: list[str]) -> str:
    """Cut a whole text before the leftmost stop string: the naive model."""
    places = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(places)] if places else text


def stream(pieces: list[str], stops: list[str]) -> tuple[list[str], StopMatcher]:
    """Push pieces until a stop is found, then flush."""
    matcher = StopMatcher(stops)
    out = []
    for piece in pieces:
        out.append(matcher.push(piece))
        if matcher.is_stopped:
            return out, matcher
    return [*out, matcher.flush()], matcher


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("abc END def", ["END"], "abc "),
        ("abc END def", ["c EN"], "ab"),
        ("abc END def", ["d"], "abc END "),
        ("abc END def", [" END def"], "abc"),
        ("abc END def", ["END", "c END"], "ab"),
        ("total: EN", ["END"], "total: EN"),
        ("ENENENEND tail", ["END"], "ENENEN"),
        ("E EN ND END done", ["END done"], "E EN ND "),
        ("hello world", ["o w"], "hell"),
        ("hello world", ["l"], "he"),
        ("hello world", ["h"], ""),
        ("anything", [], "anything"),
        ("anything", [""], "anything"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_text_ends_before_the_stop_string(
    text: str, stops: list[str], expected: str, size: int
) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert "".join(stream(pieces, stops)[0]) == expected


def test_only_what_may_begin_a_stop_string_is_held() -> None:
    assert stream(["a", "E", "b", "EN", "x"], ["END"])[0] == ["a", "", "Eb", "", "ENx", ""]


def test_the_stop_word_is_named() -> None:
    assert stream(["say", " STOP"], ["HALT", "STOP"])[1].stop_word == "STOP"


def test_a_complete_stop_waits_for_a_longer_one_that_began_earlier() -> None:
    assert stream(["ab", "c", "d!"], ["abcd", "c"])[0] == ["", "", ""]
    assert stream(["ab", "c", "x!"], ["abcd", "c"])[0] == ["", "", "ab"]
    out, matcher = stream(["ab", "c"], ["abcd", "c"])
    assert (out, matcher.stop_word) == (["", "", "ab"], "c")


@pytest.mark.parametrize("size", [1, 2, 100])
def test_of_two_that_begin_at_the_same_place_the_shorter_stops(size: int) -> None:
    text = "x abc"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    for stops in (["ab", "abc"], ["abc", "ab"]):
        out, matcher = stream(pieces, stops)
        assert ("".join(out), matcher.stop_word) == ("x ", "ab")


def count_lines(work: Callable[[], object]) -> int:
    """Count the lines of the matcher that run: a cost that no busy machine changes."""
    num_lines = 0

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal num_lines
        num_lines += event == "line" and frame.f_code.co_filename.endswith("stop_matcher.py")
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return num_lines


def test_no_text_and_no_stop_strings_cost_more_than_their_characters() -> None:
    stops = ["a" * (400 + i) + "b" * 200 for i in range(8)] + ["a" * 1023 + "c", "ab" * 300 + "c"]
    for text in ("a" * 1000 + "d" + "a" * 100, "ab" * 400 + "b" + "aab" * 100):
        matcher = StopMatcher(stops)
        pieces = [text[at : at + 8] for at in range(0, len(text), 8)]
        costs = [count_lines(partial(matcher.push, piece)) for piece in pieces]
        assert max(costs) < 100 * len(stops)


STOPS = st.lists(st.text("ab", min_size=1, max_size=4), max_size=3)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.text("abc", max_size=4), max_size=10), STOPS)
def test_streamed_text_equals_the_whole_text_cut(pieces: list[str], stops: list[str]) -> None:
    text = "".join(pieces)
    out, matcher = stream(pieces, stops)
    assert "".join(out) == cut(text, stops)
    assert matcher.is_stopped == (cut(text, stops) != text)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.text("abc", max_size=4), max_size=10), STOPS)
def test_no_more_is_held_than_may_become_a_stop_string(pieces: list[str], stops: list[str]) -> None:
    matcher = StopMatcher(stops)
    seen = sent = ""
    for piece in pieces:
        seen, sent = seen + piece, sent + matcher.push(piece)
        if matcher.is_stopped:
            return
        held = seen[len(sent) :]
        assert (
            not held
            or any(stop.startswith(held) or held.startswith(stop) for stop in stops)
            or (any(stop.startswith(held[: len(stop)]) for stop in stops))
        )
