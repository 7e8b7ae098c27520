"""Long texts are cut where their parts make the same tokens as the whole."""

import random
import re

import pytest

from inference.text.cutting import MAX_CHARS, TextCutter

MARKERS = ["<|end|>", "<|tool call|>", "</s>"]
WORDS = [
    "alpha",
    "beta,",
    "gamma.\n",
    "delta",
    "<|end|>",
    "日本語。",
    "x1",
    "\n\n",
    "<|tool call|>",
]


def test_a_short_text_stays_whole() -> None:
    text = "some <|end|> words " * 100
    assert list(TextCutter(MARKERS).cut(text)) == [text]
    assert list(TextCutter([]).cut("")) == [""]


@pytest.mark.parametrize("seed", range(8))
def test_parts_join_to_the_text_and_no_marker_is_split(seed: int) -> None:
    chooser = random.Random(seed)
    text = "".join(
        chooser.choice(WORDS) + " " * chooser.randrange(2) for _ in range(chooser.randrange(40_000))
    )
    parts = list(TextCutter(MARKERS).cut(text))
    assert "".join(parts) == text
    assert all(len(part) <= MAX_CHARS for part in parts)
    pattern = "|".join(map(re.escape, MARKERS))
    assert sum(len(re.findall(pattern, part)) for part in parts) == len(re.findall(pattern, text))


@pytest.mark.parametrize(
    ("unit", "border"),
    [("word ", " word"), ("line\n", "line\n"), ("漢字，", "，漢字")],  # noqa: RUF001
)
def test_a_cut_is_at_a_border_of_words(unit: str, border: str) -> None:
    parts = list(TextCutter(MARKERS).cut(unit * 20_000))
    assert len(parts) > 1
    assert all(part.startswith(border) for part in parts[1:])


@pytest.mark.parametrize("char", ["a", " ", "7", "\u0301", "👩\u200d"])
def test_one_giant_word_is_cut_anywhere(char: str) -> None:
    text = char * 100_000
    parts = list(TextCutter(MARKERS).cut(text))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= MAX_CHARS
