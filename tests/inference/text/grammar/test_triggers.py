"""Triggers fire where a plain search finds them, however tokens cut the text."""

import random
import re

import pytest

from inference.protocol.errors import EngineError
from inference.text.grammar import Budget
from inference.text.grammar.triggers import MAX_OPEN, Trigger, pattern_trigger, word_trigger


def fire(trigger: Trigger, pieces: list[bytes]) -> tuple[int, int] | None:
    """Push pieces; give the number of the piece that fired, and where the grammar begins."""
    progress, position, budget = trigger.start(), 0, Budget(10**9)
    for number, piece in enumerate(pieces):
        progress, start = trigger.push(progress, piece, position, budget)
        if start is not None:
            return number, start
        position += len(piece)
    return None


def test_a_word_fires_with_its_last_byte() -> None:
    assert fire(word_trigger("<tool>"), [b"say <to", b"ol", b"> x"]) == (2, 4)
    assert fire(word_trigger("<tool>"), [b"<tool <to", b"ol"]) is None


@pytest.mark.parametrize(
    ("pattern", "text", "start"),
    [
        ("<tool>", "a <tool>", 2),
        (r"<\w+>\s*(\{)", "x <call>  {", 10),
        (r"[\s\S]*?(<call>)", "any\né <call>", 7),
        (r"^\s*(\{)", "  {", 2),
        (r"^\s*(\{)", "x {", None),
        (r"^(<a>|<b>)", "<b>", 0),
        ("a|b", "xxb", 2),
        ("(?:x|y)+(z)", "axyz", 3),
        (r"[(](b)", "a(b", 2),
        (r"\((b)", "a(b", 2),
        ("é(é)", "aéé", 3),
    ],
)
def test_where_the_grammar_begins(pattern: str, text: str, start: int | None) -> None:
    found = fire(pattern_trigger(pattern), [text.encode()])
    assert (found and found[1]) == start
    pieces = [bytes([byte]) for byte in text.encode()]
    found = fire(pattern_trigger(pattern), pieces)
    assert (found and found[1]) == start


def test_a_pattern_of_the_whole_text_waits_for_the_end_of_a_token() -> None:
    trigger = pattern_trigger("^(call):[0-9]+$")
    assert fire(trigger, [b"call:", b"12"]) == (1, 0)
    assert fire(trigger, [b"call:", b"12 "]) is None
    assert fire(trigger, [b"a call:12"]) is None


@pytest.mark.parametrize(
    "pattern", ["(?=x)", "(?:(a))", "a\\1", "[", "(", "^a|b", "a|b$", "x" * 3000]
)
def test_patterns_beyond_the_subset_are_refused(pattern: str) -> None:
    with pytest.raises(EngineError) as caught:
        pattern_trigger(pattern)
    assert caught.value.param == "grammar_triggers"


@pytest.mark.parametrize("seed", range(200))
def test_a_trigger_fires_where_a_search_first_succeeds(seed: int) -> None:
    chooser = random.Random(seed)
    pattern = chooser.choice(["ab", "a+b", "(?:ab|ba)a", "a[ab]{2}c", "c(a|b)", "(?:a|bb)*c"])
    text = "".join(chooser.choice("abc") for _ in range(chooser.randrange(14)))
    pieces, at = [], 0
    while at < len(text):
        size = chooser.randrange(1, 4)
        pieces.append(text[at : at + size].encode())
        at += size
    ends = [end for end in range(len(text) + 1) if re.search(pattern, text[:end])]
    found = fire(pattern_trigger(pattern), pieces)
    assert (found is None) == (not ends)
    if found:
        # The piece that fired is the one in which the shortest match ends.
        assert len(b"".join(pieces[: found[0]])) < ends[0] <= len(b"".join(pieces[: found[0] + 1]))
        match = re.search(pattern, text[: ends[0]])
        assert match
        assert found[1] == (match.start(1) if match.re.groups else match.start())


def test_a_hostile_pattern_costs_a_bounded_number_of_steps() -> None:
    trigger = pattern_trigger("(a|aa|aaa)+(a*)*[b-z]x")
    progress, budget = trigger.start(), Budget(200_000)
    progress, start = trigger.push(progress, b"a" * 1000, 0, budget)
    assert start is None
    assert len(progress.begun) <= MAX_OPEN
