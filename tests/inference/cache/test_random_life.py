"""A long life of a prefix cache, at random: it never lends what is not there."""

import random
from itertools import takewhile

import pytest

from inference.cache.holders import Cells, Match
from inference.cache.reuse_rules import MIN_GAIN, ReuseRules
from tests.inference.cache.caches import make_cache


@pytest.mark.parametrize("seed", range(6))
def test_random_operations_agree_with_a_naive_model(seed: int) -> None:
    """Every hit is what the slot or the saved state really has, and none in a slot is missed."""
    draw = random.Random(seed)
    cache = make_cache(host_bytes=600, rules=ReuseRules(is_unified=seed % 2 == 1))
    held: dict[int, tuple[str, list[int]]] = {}
    for _ in range(400):
        slot, salt = draw.choice(cache.free_slots()), draw.choice("ab")
        prompt = [draw.randint(0, 1) for _ in range(4)] * draw.randint(1, 12)
        prompt += [draw.randint(0, 1) for _ in range(draw.randint(1, 9))]
        cache.lease(slot)
        match = cache.find_prefix(slot, salt, prompt)
        found = match.num_tokens
        assert contents(match, held, salt)[:found] == prompt[:found]
        best = max((shared(held.get(at), salt, prompt) for at in range(4)), default=0)
        assert found >= best - MIN_GAIN
        if cache.is_worth_saving(slot, 0):
            cache.save(slot, spell(*held[slot]))
        cache.assign(
            slot,
            salt,
            prompt,
            num_promised=len(prompt),
            num_computed=found,
            source=match.holder,
        )
        cache.advance(slot, len(prompt))
        keeps = draw.random() < 0.8
        assert cache.release(slot, keeps_cells=keeps) == (len(prompt) if keeps else 0)
        held[slot] = (salt, prompt if keeps else [])
        cache.check_integrity()
        if draw.random() < 0.3:
            victim = draw.choice(cache.free_slots())
            cache.clear(victim)
            held[victim] = (salt, [])
            cache.check_integrity()
    assert cache.num_saved


def spell(salt: str, tokens: list[int]) -> memoryview:
    """Make a state that tells whose it is and what it holds."""
    return memoryview(salt.encode() + bytes(tokens))


def contents(match: Match, held: dict[int, tuple[str, list[int]]], salt: str) -> list[int]:
    """Give what a match's holder really has, which must be of the salt."""
    if match.holder is None:
        return []
    if isinstance(match.holder, Cells):
        assert match.num_tokens == 0 or held[match.holder.slot][0] == salt
        return held[match.holder.slot][1]
    assert match.holder.state is not None
    assert bytes(match.holder.state[:1]) == salt.encode()
    return list(match.holder.state[1:])


def shared(held: tuple[str, list[int]] | None, salt: str, prompt: list[int]) -> int:
    """Count how many tokens of a prompt something held begins with."""
    if held is None or held[0] != salt:
        return 0
    pairs = zip(held[1], prompt[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
