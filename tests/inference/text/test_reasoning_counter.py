"""Tokens of reasoning are counted by its marks, however these come in pieces."""

import random

import pytest

from inference.protocol.jobs import ReasoningMarks
from inference.text.reasoning_counter import make_counter

THINK = ReasoningMarks(opening="<think>", closing="</think>")
OPEN = ReasoningMarks(opening="<think>", closing="</think>", is_open=True)
CHANNELS = ReasoningMarks(opening="", closing="", has_channels=True)
HARMONY = "<|channel|>analysis<|message|>hmm<|end|><|start|>assistant<|channel|>final<|message|>Hi"


def count(marks, *pieces):
    counter = make_counter(marks)
    for piece in pieces:
        counter.feed(piece)
    return counter.num_tokens


@pytest.mark.parametrize(
    ("marks", "pieces", "number"),
    [
        (THINK, ["<think>", "a", "b", "</think>", "c", "d"], 4),
        (THINK, ["\n", "<th", "ink>", "a", "</th", "ink>c", "d"], 6),
        (THINK, ["a", "<think>", "b", "</think>"], 0),
        (THINK, ["<thin", "g>", "a"], 0),
        (THINK, ["", "<think>", "a"], 3),
        (OPEN, ["a", "b", "</think>", "c"], 3),
        (OPEN, ["", "", "a</think>b", "c"], 3),
        (CHANNELS, ["<|channel|>", "final", "<|message|>", "Hi"], 0),
        (CHANNELS, ["<|channel|>", "analysis", "<|message|>", "hm", "<|end|>", "<|start|>"], 5),
        (CHANNELS, ["<|channel|>analysis to=functions.f", "<|message|>", "{}"], 0),
    ],
)
def test_tokens_between_the_marks_count(marks, pieces, number):
    assert count(marks, *pieces) == number


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_length_count_as_far_as_the_reasoning_goes(seed):
    generator, pieces, rest = random.Random(seed), [], HARMONY
    while rest:
        length = generator.randrange(1, 9)
        pieces.append(rest[:length])
        rest = rest[length:]
    ends = HARMONY.index("<|end|>") + len("<|end|>")
    lengths = [sum(map(len, pieces[: number + 1])) for number in range(len(pieces))]
    assert count(CHANNELS, *pieces) == sum(length < ends for length in lengths) + 1


def test_a_long_text_holds_little():
    counter = make_counter(OPEN)
    for _ in range(10_000):
        counter.feed("words ")
    assert counter.num_tokens == 10_000
    assert len(counter._held) < 20
