"""The longest computed beginning of a prompt is found, and only by those who may see it."""

import pytest

from inference.cache.holders import Blob, Cells, Match
from inference.cache.prefix_cache import PrefixCache
from inference.cache.reuse_rules import MAX_WASTE, ReuseRules
from tests.inference.cache.caches import make_cache, run

LONG = list(range(100))


def state(num_tokens: int) -> memoryview:
    return memoryview(bytes(4 * num_tokens))


def find(cache: PrefixCache, slot: int, salt: str, prompt: list[int]) -> tuple[int | str, int]:
    """Lease a slot and tell where a prompt is found, and how much of it."""
    cache.lease(slot)
    match = cache.find_prefix(slot, salt, prompt)
    cache.check_integrity()
    return where(match), match.num_tokens


def where(match: Match) -> int | str:
    if match.holder is None:
        return "nowhere"
    return match.holder.slot if isinstance(match.holder, Cells) else "saved"


def test_a_second_prompt_reuses_a_shared_prefix() -> None:
    cache = make_cache(("a", LONG))
    assert find(cache, 0, "a", [*LONG[:70], 999, 998]) == (0, 70)


def test_a_prefix_is_copied_from_another_slot() -> None:
    cache = make_cache(("a", LONG))
    assert find(cache, 1, "a", [*LONG, 7]) == (0, 100)


def test_another_salt_sees_nothing() -> None:
    cache = make_cache(("a", LONG))
    assert find(cache, 0, "b", LONG) == ("nowhere", 0)
    assert find(cache, 1, "b", LONG) == ("nowhere", 0)


def test_what_has_no_scope_is_shared_with_nobody() -> None:
    cache = make_cache()
    cache.lease(0)
    cache.assign(0, None, list(LONG), num_promised=100)
    cache.advance(0, 100)
    cache.lease(1)
    assert cache.find_prefix(1, None, [*LONG, 7]).num_tokens == 0
    assert cache.release(0, keeps_cells=True) == 0
    cache.check_integrity()


def test_the_last_token_is_always_left_to_compute() -> None:
    assert find(make_cache(("a", LONG)), 0, "a", list(LONG)) == (0, 99)
    assert find(make_cache(("a", LONG)), 0, "a", [0]) == ("nowhere", 0)


def test_cells_in_place_win_unless_a_copy_saves_enough() -> None:
    cache = make_cache(("a", LONG[:50]), ("a", LONG[:55]), ("a", LONG))
    cache.lease(0)
    assert where(cache.find_prefix(0, "a", [*LONG[:56], 7])) == 0
    assert where(cache.find_prefix(0, "a", [*LONG, 7])) == 2


def test_of_equal_beginnings_the_shortest_source_is_copied() -> None:
    cache = make_cache(("a", [*LONG, *range(500, 900)]), ("a", [*LONG, 1]), ("a", [*LONG, 2, 3]))
    assert find(cache, 3, "a", [*LONG, 9]) == (1, 100)


def test_a_short_match_with_a_long_sequence_is_not_worth_a_copy() -> None:
    long = [*LONG[:20], *range(1000, 1000 + 20 * MAX_WASTE)]
    assert find(make_cache(("a", long)), 1, "a", [*LONG[:20], 7])[1] == 0
    assert find(make_cache(("a", long)), 0, "a", [*LONG[:20], 7]) == (0, 20)
    free = make_cache(("a", long), rules=ReuseRules(is_unified=True))
    assert find(free, 1, "a", [*LONG[:20], 7]) == (0, 20)


def test_what_a_running_sequence_will_compute_is_promised() -> None:
    cache = make_cache(num_slots=2)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), num_promised=100)
    cache.advance(0, 10)
    cache.lease(1)
    match = cache.find_prefix(1, "a", [*LONG[:80], 7])
    assert (where(match), match.num_tokens, match.num_promised) == (0, 10, 80)
    assert cache.is_catching_up(match)
    cache.advance(0, 80)
    assert not cache.is_catching_up(match)
    assert cache.find_prefix(1, "a", [*LONG[:80], 7]).num_tokens == 80


def test_who_waits_for_most_of_a_promise_waits_for_the_rest() -> None:
    cache = make_cache(num_slots=2)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), num_promised=100)
    cache.advance(0, 79)
    cache.lease(1)
    match = cache.find_prefix(1, "a", [*LONG[:80], 7])
    assert not cache.is_catching_up(match)
    assert cache.is_catching_up(match, is_awaited=True)
    cache.advance(0, 80)
    assert not cache.is_catching_up(match, is_awaited=True)


def test_nobody_waits_for_one_who_came_later() -> None:
    cache = make_cache(num_slots=2)
    cache.lease(1)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), num_promised=100)
    assert not cache.is_catching_up(cache.find_prefix(1, "a", list(LONG)))


def test_a_promise_ends_with_its_lease() -> None:
    cache = make_cache(num_slots=3)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), num_promised=100)
    cache.advance(0, 10)
    cache.lease(1)
    match = cache.find_prefix(1, "a", [*LONG[:80], 7])
    cache.release(0, keeps_cells=True)
    assert not cache.is_catching_up(match)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), num_promised=100)
    assert not cache.is_catching_up(match)
    assert not cache.is_catching_up(cache.find_prefix(1, "a", [*LONG[:80], 7]))


def test_only_computed_cells_outlive_a_lease() -> None:
    cache = make_cache(num_slots=1)
    cache.lease(0)
    cache.assign(0, "a", list(LONG), num_promised=100)
    cache.advance(0, 30)
    assert cache.release(0, keeps_cells=True) == 30
    assert cache.num_cells == 30
    assert find(cache, 0, "a", list(LONG)) == (0, 30)
    assert cache.release(0, keeps_cells=False) == 0
    assert cache.num_cells == 0


def test_generated_tokens_are_found_once_their_sequence_has_ended() -> None:
    cache = make_cache(num_slots=2)
    tokens = list(LONG[:50])
    cache.lease(0)
    cache.assign(0, "a", tokens, num_promised=50)
    tokens.extend(LONG[50:])
    cache.advance(0, 99)
    cache.lease(1)
    assert cache.find_prefix(1, "a", [*LONG, 7]).num_tokens == 50
    cache.release(0, keeps_cells=True)
    assert cache.find_prefix(1, "a", [*LONG, 7]).num_tokens == 99


def test_a_deterministic_deployment_reuses_prompts_at_their_cuts_only() -> None:
    cache = make_cache(rules=ReuseRules(granularity=32))
    tokens = list(LONG[:50])
    cache.lease(0)
    cache.assign(0, "a", tokens, num_promised=50)
    tokens.extend(LONG[50:])
    cache.advance(0, 100)
    assert cache.release(0, keeps_cells=True) == 50
    assert find(cache, 1, "a", [*LONG, 7]) == (0, 32)


def test_what_a_context_shift_moved_is_not_reused() -> None:
    cache = make_cache()
    tokens = list(LONG)
    cache.lease(0)
    cache.assign(0, "a", tokens, num_promised=40)
    cache.advance(0, 100)
    del tokens[20:60]
    cache.shift(0, 20, 40)
    assert (cache.num_computed(0), cache.num_cells) == (60, 60)
    assert find(cache, 1, "a", [*LONG, 7]) == (0, 20)
    assert cache.release(0, keeps_cells=True) == 20
    cache.check_integrity()


def test_a_context_shift_breaks_its_promise_and_nobody_waits_for_ever() -> None:
    cache = make_cache()
    cache.lease(0)
    cache.assign(0, "a", list(LONG), num_promised=80)
    cache.advance(0, 40)
    cache.lease(1)
    match = cache.find_prefix(1, "a", [*LONG[:80], 7])
    cache.advance(0, 100)
    cache.shift(0, 1, 60)
    assert not cache.is_catching_up(match, is_awaited=True)


def test_a_context_that_has_shifted_pauses_no_more() -> None:
    """It comes by the same number of tokens again, but they are others."""
    cache = make_cache(rules=ReuseRules(window=0))
    cache.lease(0)
    cache.assign(0, "a", list(LONG), num_promised=80, pause_at=60)
    cache.advance(0, 60)
    assert cache.is_pausing(0)
    cache.advance(0, 100)
    cache.shift(0, 1, 50)
    cache.advance(0, 60)
    assert not cache.is_pausing(0)


def test_what_lies_where_nobody_computes_yet_makes_room_last() -> None:
    cache = make_cache(("a", LONG), ("b", LONG))
    cache.lease(0)
    assert cache.num_available_cells == cache.num_total_cells
    assert cache.find_coldest() == 1
    cache.clear(1)
    assert cache.find_coldest() == 0
    cache.clear(0)
    assert cache.num_cells == cache.release(0, keeps_cells=True) == 0
    cache.check_integrity()


@pytest.mark.parametrize(("window", "num_tokens"), [(None, 70), (0, 0), (40, 0), (100, 70)])
def test_a_copy_that_would_not_be_complete_is_not_made(window: int | None, num_tokens: int) -> None:
    cache = make_cache(("a", LONG), rules=ReuseRules(window=window))
    assert find(cache, 1, "a", [*LONG[:70], 7])[1] == num_tokens
    assert find(cache, 2, "a", [*LONG, 7]) == (0, 100)


def test_a_sliding_window_can_be_cut_in_place_and_a_recurrent_state_never() -> None:
    for window, num_tokens in ((40, 70), (0, 0)):
        cache = make_cache(("a", LONG), rules=ReuseRules(window=window))
        assert find(cache, 0, "a", [*LONG[:70], 7])[1] == num_tokens
    shared = make_cache(("a", LONG), rules=ReuseRules(window=40, is_unified=True))
    assert find(shared, 1, "a", [*LONG[:70], 7]) == (0, 70)


def test_a_recurrent_prompt_is_waited_for_to_its_last_token() -> None:
    cache = make_cache(rules=ReuseRules(window=0))
    cache.lease(0)
    cache.assign(0, "a", list(LONG), num_promised=100)
    cache.advance(0, 95)
    cache.lease(1)
    assert not cache.is_catching_up(cache.find_prefix(1, "a", [*LONG[:90], 7]))
    match = cache.find_prefix(1, "a", [*LONG, 7])
    assert cache.is_catching_up(match)
    cache.advance(0, 100)
    assert cache.find_prefix(1, "a", [*LONG, 7]).num_tokens == 100
    cache.advance(0, 101)
    assert cache.find_prefix(1, "a", [*LONG, 7]).num_tokens == 0


def test_shared_cells_count_once_in_a_unified_cache() -> None:
    for is_unified, num_cells in ((True, 130), (False, 230)):
        cache = make_cache(("a", LONG), rules=ReuseRules(is_unified=is_unified))
        cache.lease(1)
        match = cache.find_prefix(1, "a", [*LONG, *LONG[:30]])
        cache.assign(
            1,
            "a",
            [*LONG, *LONG[:30]],
            num_promised=130,
            num_computed=100,
            source=match.holder,
        )
        cache.advance(1, 130)
        assert cache.num_cells == num_cells
        cache.check_integrity()


def test_a_saved_state_is_found_and_goes_once_a_slot_has_it() -> None:
    cache = make_cache(("a", LONG))
    assert cache.is_worth_saving(0, 0)
    cache.save(0, state(100))
    assert not cache.is_worth_saving(0, 0)
    run(cache, 0, "b", LONG)
    cache.lease(1)
    match = cache.find_prefix(1, "a", [*LONG, 7])
    assert (where(match), match.num_tokens) == ("saved", 100)
    assert isinstance(match.holder, Blob) and cache.load(match.holder) == state(100)
    cache.assign(1, "a", [*LONG, 7], num_promised=101, num_computed=100, source=match.holder)
    cache.check_integrity()
    cache.lease(2)
    assert where(cache.find_prefix(2, "a", [*LONG, 7])) == 1


def test_a_longer_state_stands_for_a_shorter_one_of_the_same_salt() -> None:
    cache = make_cache(("a", LONG[:40]), ("b", LONG[:40]), ("a", LONG))
    for slot, num_tokens in ((0, 40), (1, 40), (2, 100)):
        cache.save(slot, state(num_tokens))
        cache.clear(slot)
    cache.check_integrity()
    assert cache.num_saved == 2
    assert find(cache, 3, "a", [*LONG[:40], 7]) == ("saved", 40)


def test_a_state_that_cannot_be_cut_stands_for_itself_only() -> None:
    cache = make_cache(("a", LONG[:40]), ("a", LONG), rules=ReuseRules(window=0))
    for slot, num_tokens in ((0, 40), (1, 100)):
        cache.save(slot, state(num_tokens))
        cache.clear(slot)
    assert cache.num_saved == 2
    assert find(cache, 3, "a", [*LONG[:40], 7]) == ("saved", 40)


def test_the_state_of_least_use_goes_first() -> None:
    cache = make_cache(("a", LONG), ("b", LONG), ("c", LONG), host_bytes=900)
    for slot in range(3):
        cache.save(slot, state(100))
        cache.clear(slot)
    cache.check_integrity()
    assert [find(cache, slot, salt, LONG)[1] for slot, salt in enumerate("abc")] == [0, 99, 99]


def test_little_that_would_be_lost_is_not_worth_saving() -> None:
    cache = make_cache(("a", LONG), ("a", [*LONG, 1, 2, 3]), ("a", LONG[:10]))
    assert [cache.num_lost(slot, 0) for slot in range(3)] == [0, 3, 0]
    assert cache.num_lost(1, 100) == 3
    assert not any(cache.is_worth_saving(slot, 0) for slot in range(3))


def test_the_coldest_slot_is_what_others_have_too_then_the_oldest() -> None:
    cache = make_cache(("b", LONG), ("a", LONG), ("a", [*LONG, 1]))
    assert cache.find_coldest() == 1
    cache.clear(1)
    assert cache.find_coldest() == 0
