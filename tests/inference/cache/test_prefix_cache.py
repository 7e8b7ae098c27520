"""The longest computed beginning of a prompt is found, and only by those who may see it."""

import random

from inference.cache.prefix_cache import PrefixCache

LONG = list(range(100))


def make_cache(*contents: tuple[str, list[int]], num_slots: int = 4) -> PrefixCache:
    """Build a cache whose first slots hold finished sequences."""
    cache = PrefixCache(num_slots)
    for slot, (salt, tokens) in enumerate(contents):
        cache.lease(slot)
        cache.assign(slot, salt, list(tokens), len(tokens))
        cache.release(slot, keeps_cells=True)
    return cache


def find(cache: PrefixCache, slot: int, salt: str, prompt: list[int]) -> tuple[int, int]:
    cache.lease(slot)
    match = cache.find_prefix(slot, salt, prompt)
    cache.check_integrity()
    return match.slot, match.num_tokens


def test_a_second_prompt_reuses_a_shared_prefix() -> None:
    cache = make_cache(("a", LONG))
    assert find(cache, 0, "a", [*LONG[:70], 999, 998]) == (0, 70)


def test_a_prefix_is_copied_from_another_slot() -> None:
    cache = make_cache(("a", LONG))
    assert find(cache, 1, "a", [*LONG, 7]) == (0, 100)


def test_another_salt_sees_nothing() -> None:
    cache = make_cache(("a", LONG))
    assert find(cache, 0, "b", LONG) == (0, 0)
    assert find(cache, 1, "b", LONG) == (1, 0)


def test_the_last_token_is_always_left_to_compute() -> None:
    assert find(make_cache(("a", LONG)), 0, "a", list(LONG)) == (0, 99)
    assert find(make_cache(("a", LONG)), 0, "a", [0]) == (0, 0)


def test_cells_in_place_win_unless_a_copy_saves_enough() -> None:
    cache = make_cache(("a", LONG[:50]), ("a", LONG[:55]), ("a", LONG))
    cache.lease(0)
    assert cache.find_prefix(0, "a", [*LONG[:56], 7]).slot == 0
    assert cache.find_prefix(0, "a", [*LONG, 7]).slot == 2


def test_a_short_match_with_a_long_sequence_is_not_worth_a_copy() -> None:
    cache = make_cache(("a", LONG + list(range(1000, 2000))))
    assert find(cache, 1, "a", [*LONG[:20], 7]) == (1, 0)


def test_what_a_running_sequence_will_compute_is_promised() -> None:
    cache = PrefixCache(2)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), 10)
    cache.lease(1)
    match = cache.find_prefix(1, "a", [*LONG[:80], 7])
    assert (match.slot, match.num_tokens, match.num_promised) == (0, 10, 80)
    assert cache.is_catching_up(match)
    cache.advance(0, 80)
    assert not cache.is_catching_up(match)
    assert cache.find_prefix(1, "a", [*LONG[:80], 7]).num_tokens == 80


def test_a_promise_ends_with_its_lease() -> None:
    cache = PrefixCache(3)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), 10)
    cache.lease(1)
    match = cache.find_prefix(1, "a", [*LONG[:80], 7])
    cache.release(0, keeps_cells=True)
    assert not cache.is_catching_up(match)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), 10)
    assert not cache.is_catching_up(match)
    assert cache.find_prefix(1, "a", [*LONG[:80], 7]).num_promised == 0


def test_only_computed_cells_outlive_a_lease() -> None:
    cache = PrefixCache(1)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), 30)
    cache.release(0, keeps_cells=True)
    assert cache.num_cells == 30
    assert find(cache, 0, "a", list(LONG)) == (0, 30)
    cache.release(0, keeps_cells=False)
    assert cache.num_cells == 0


def test_random_operations_agree_with_a_naive_model() -> None:
    draw = random.Random(3)
    cache = PrefixCache(4)
    naive: dict[int, tuple[str, list[int]]] = {}
    for _ in range(2000):
        slot = cache.free_slots()[0]
        salt = draw.choice("ab")
        prompt = [draw.randint(0, 1) for _ in range(draw.randint(1, 40))]
        cache.lease(slot)
        match = cache.find_prefix(slot, salt, prompt)
        other_salt, held = naive.get(match.slot, (salt, []))
        assert match.num_tokens == 0 or other_salt == salt
        assert held[: match.num_tokens] == prompt[: match.num_tokens]
        assert match.num_tokens < len(prompt)
        cache.assign(slot, salt, prompt, len(prompt))
        keeps = draw.random() < 0.8
        cache.release(slot, keeps_cells=keeps)
        naive[slot] = (salt, prompt if keeps else [])
        cache.check_integrity()
        if draw.random() < 0.5:
            victim = draw.randrange(4)
            cache.lease(victim)
            cache.release(victim, keeps_cells=False)
            naive[victim] = (salt, [])
