"""The index of pairs against a matcher that looks everywhere."""

import random
from collections.abc import Sequence

import pytest

from inference.speculation.ngram import MAX_MATCH, MIN_MATCH, NgramIndex

ENOUGH = 10_000


def guess(tokens: Sequence[int], max_tokens: int = 4) -> tuple[int, ...]:
    index = NgramIndex(tokens)
    assert index.catch_up(ENOUGH)
    return index.guess(max_tokens).tokens


def naive_guess(tokens: Sequence[int], max_tokens: int) -> tuple[int, ...]:
    """Try every length from the longest, every place from the latest."""
    for length in range(min(MAX_MATCH, len(tokens)), MIN_MATCH - 1, -1):
        ending = tuple(tokens[-length:])
        for start in range(len(tokens) - length - 1, -1, -1):
            if tuple(tokens[start : start + length]) != ending:
                continue
            text = list(tokens)
            for at in range(start + length, start + length + max_tokens):
                text.append(text[at])
            return tuple(text[len(tokens) :])
    return ()


def test_what_followed_the_same_words_is_repeated() -> None:
    assert guess([1, 2, 3, 4, 5, 9, 1, 2]) == (3, 4, 5, 9)


def test_a_longer_match_wins_over_a_later_one() -> None:
    assert guess([7, 1, 2, 3, 5, 1, 2, 4, 7, 1, 2], 1) == (3,)


def test_a_guess_is_as_strong_as_its_match_is_long() -> None:
    index = NgramIndex([9, 1, 2, 3, 4, 8, 1, 2, 3])
    index.catch_up(ENOUGH)
    assert (index.guess(1).tokens, index.guess(1).strength) == ((4,), 3)


def test_the_latest_of_equal_matches_wins() -> None:
    assert guess([1, 2, 3, 1, 2, 4, 1, 2], 1) == (4,)


def test_a_loop_is_continued_beyond_its_end() -> None:
    assert guess([5, 6, 5, 6], 5) == (5, 6, 5, 6, 5)
    assert guess([5, 5, 5], 3) == (5, 5, 5)


@pytest.mark.parametrize("tokens", [[], [1], [1, 2], [1, 2, 3], [1, 1]])
def test_nothing_is_guessed_without_an_earlier_match(tokens: list[int]) -> None:
    assert guess(tokens) == ()


def test_no_guess_is_made_where_none_is_wanted() -> None:
    assert guess([1, 2, 1, 2], 0) == ()


def test_tokens_are_indexed_in_bounded_bites() -> None:
    tokens = [1, 2, 3, 4, 1, 2]
    index = NgramIndex(tokens)
    assert [index.catch_up(2) for _ in range(3)] == [False, False, True]
    assert index.guess(2).tokens == (3, 4)
    tokens += [3]
    assert index.catch_up(2)
    assert index.guess(2).tokens == (4, 1)


@pytest.mark.parametrize("seed", range(40))
def test_it_agrees_with_the_naive_matcher(seed: int) -> None:
    """Texts with so few repeats that the bounded search meets them all."""
    rng = random.Random(seed)
    tokens: list[int] = []
    index = NgramIndex(tokens)
    for _ in range(60):
        if tokens and rng.random() < 0.4:
            start = rng.randrange(len(tokens))
            tokens += tokens[start : start + rng.randrange(1, 24)]
        else:
            tokens += [rng.randrange(40) for _ in range(rng.randrange(1, 6))]
        while not index.catch_up(rng.randrange(1, 20)):
            pass
        length = rng.randrange(1, 12)
        assert index.guess(length).tokens == naive_guess(tokens, length) or _has_many(tokens)


def _has_many(tokens: Sequence[int]) -> bool:
    """Whether the last pair occurs more often than the index looks."""
    pair = tuple(tokens[-2:])
    return sum(tuple(tokens[at : at + 2]) == pair for at in range(len(tokens) - 1)) > 16


@pytest.mark.parametrize("seed", range(5))
def test_a_guess_always_continues_some_match(seed: int) -> None:
    """However often the last words occur, and even with two tokens only."""
    rng = random.Random(seed)
    tokens = [rng.randrange(2) for _ in range(400)]
    for end in range(3, len(tokens)):
        text = tokens[:end]
        guessed = guess(text, 3)
        places = [at for at in range(1, end - 1) if text[at - 1 : at + 1] == text[-2:]]
        assert bool(guessed) == bool(places)
        assert not guessed or any(guessed == _read_on(text, at, 3) for at in places)


def _read_on(tokens: Sequence[int], at: int, count: int) -> tuple[int, ...]:
    text = list(tokens)
    for offset in range(count):
        text.append(text[at + 1 + offset])
    return tuple(text[len(tokens) :])
