"""The tree finds every holder of every beginning, also where it leaves an edge half-way."""

import random
from itertools import takewhile

import pytest

from inference.cache.radix_tree import RadixTree

LONG = list(range(1000))


def make_tree(**contents: list[int]) -> RadixTree[str]:
    tree: RadixTree[str] = RadixTree()
    for name, tokens in contents.items():
        tree.insert(tokens, name)
        tree.check_integrity()
    return tree


def matches(tree: RadixTree[str], tokens: list[int], limit: int | None = None) -> list[str]:
    found = tree.matches(tokens, len(tokens) if limit is None else limit)
    return [f"{name} {length}" for length, name in found]


def test_a_holder_is_found_by_its_own_tokens() -> None:
    assert matches(make_tree(a=LONG), LONG) == ["a 1000"]


def test_a_partly_matched_edge_already_counts() -> None:
    tree = make_tree(a=LONG)
    assert matches(tree, [*LONG[:100], -1]) == ["a 100"]
    assert matches(tree, LONG[:100]) == ["a 100"]


def test_those_who_share_most_come_first() -> None:
    tree = make_tree(a=LONG, b=LONG[:500], c=[*LONG[:700], -1, -2], d=[-1, *LONG])
    assert matches(tree, [*LONG[:800], -9]) == ["a 800", "c 700", "b 500"]
    assert matches(tree, [*LONG[:700], -1]) == ["c 701", "a 700", "b 500"]


def test_a_limit_cuts_what_is_shared() -> None:
    assert matches(make_tree(a=LONG, b=LONG[:10]), LONG, limit=50) == ["a 50", "b 10"]
    assert matches(make_tree(a=LONG), LONG, limit=0) == []


def test_nothing_shared_is_nothing_found() -> None:
    assert matches(make_tree(a=LONG), [5, 6]) == []
    assert matches(make_tree(), LONG) == []
    assert matches(make_tree(a=LONG), []) == []


def test_two_may_hold_the_same() -> None:
    tree = make_tree(a=LONG, b=LONG)
    assert matches(tree, LONG) == ["a 1000", "b 1000"]
    tree.remove("a")
    tree.check_integrity()
    assert matches(tree, LONG) == ["b 1000"]


def test_removal_joins_edges_again() -> None:
    tree = make_tree(a=LONG, b=[*LONG[:500], -1], c=LONG[:200])
    for name in ("b", "c", "a"):
        tree.remove(name)
        tree.check_integrity()
    assert len(tree) == 0


def test_shorter_holders_on_the_way_are_beginnings() -> None:
    tree = make_tree(a=LONG, b=LONG[:500], c=LONG[:200], d=[*LONG[:300], -1], e=LONG)
    assert list(tree.beginnings("a")) == ["e", "b", "c"]
    assert list(tree.beginnings("c")) == []


@pytest.mark.parametrize("seed", range(8))
def test_random_life_agrees_with_a_list_of_prefixes(seed: int) -> None:
    draw = random.Random(seed)
    tree: RadixTree[int] = RadixTree()
    naive: dict[int, list[int]] = {}
    for name in range(300):
        tokens = [draw.randint(0, 2) for _ in range(draw.randint(1, 12))]
        if draw.random() < 0.3 and naive:
            tokens = draw.choice(list(naive.values()))[: draw.randint(1, 12)] + tokens[:4]
        if draw.random() < 0.6:
            tree.insert(tokens, name)
            naive[name] = tokens
        elif naive:
            victim = draw.choice(list(naive))
            tree.remove(victim)
            del naive[victim]
        tree.check_integrity()
        limit = draw.randint(0, len(tokens))
        found = list(tree.matches(tokens, limit))
        assert [length for length, _ in found] == sorted((n for n, _ in found), reverse=True)
        assert {holder: length for length, holder in found} == {
            holder: length
            for holder, held in naive.items()
            if (length := num_shared(held, tokens[:limit]))
        }
        for holder, held in naive.items():
            shorter = {other for other, its in naive.items() if held[: len(its)] == its}
            assert set(tree.beginnings(holder)) == shorter - {holder}


def num_shared(first: list[int], second: list[int]) -> int:
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
