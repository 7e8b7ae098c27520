"""Shared beginnings are computed once, by whoever comes first."""

import pytest

from tests.inference.engine.fakes import Bench, make_job

SHARED = "a system prompt that many share, " * 3


def computed_tokens(bench: Bench) -> int:
    return sum(count for batch in bench.backend.batches for _, count in batch)


def test_the_same_prompt_again_computes_one_token_of_it() -> None:
    bench = Bench()
    first = bench.answer(make_job("first", SHARED, max_tokens=1))
    second = bench.answer(make_job("second", SHARED, max_tokens=1))
    assert first.done.num_cached_tokens == 0
    assert second.done.num_cached_tokens == second.started.num_cached_tokens == len(SHARED) - 1
    assert second.text == first.text
    assert computed_tokens(bench) == len(SHARED) + 1


def test_the_second_prompt_with_a_shared_prefix_already_hits() -> None:
    bench = Bench()
    bench.answer(make_job("first", SHARED + "one", max_tokens=1))
    second = bench.answer(make_job("second", SHARED + "two", max_tokens=3))
    assert second.done.num_cached_tokens == len(SHARED)
    assert second.text == Bench().answer(make_job("second", SHARED + "two", max_tokens=3)).text


def test_a_conversation_reuses_its_answers_too() -> None:
    bench = Bench()
    first = bench.answer(make_job("first", "hello", max_tokens=8))
    second = bench.answer(make_job("second", "hello" + first.text + " more", max_tokens=1))
    assert second.done.num_cached_tokens == 5 + 7


def test_another_slot_copies_the_prefix() -> None:
    bench = Bench()
    bench.add(make_job("first", SHARED + "one", max_tokens=50))
    bench.step(2)
    bench.add(make_job("second", SHARED + "two", max_tokens=3))
    bench.run()
    assert bench.outcome("second").started.slot == 1
    assert bench.outcome("second").done.num_cached_tokens == len(SHARED)


def test_many_cold_prompts_with_one_prefix_compute_it_once() -> None:
    bench = Bench(num_slots=8, step_token_budget=32)
    for index in range(8):
        bench.add(make_job(f"job{index}", f"{SHARED}{index}", max_tokens=4))
    bench.run()
    prompts = sum(len(SHARED) + 1 for _ in range(8))
    saved = sum(bench.outcome(f"job{index}").done.num_cached_tokens for index in range(8))
    assert saved == 7 * len(SHARED)
    assert computed_tokens(bench) == prompts - saved + 8 * 3
    for index in range(8):
        alone = Bench().answer(make_job(f"job{index}", f"{SHARED}{index}", max_tokens=4))
        assert bench.outcome(f"job{index}").text == alone.text


@pytest.mark.parametrize("end", ["cancel", "fail"])
def test_those_who_wait_for_a_prefix_go_on_when_its_owner_ends(end: str) -> None:
    bench = Bench(
        step_token_budget=16,
        fails_for=lambda piece: end == "fail" and piece.seq_id == 0 != piece.start,
    )
    bench.add(make_job("owner", SHARED + "one"))
    bench.add(make_job("other", SHARED + "two"))
    bench.step(1)
    if end == "cancel":
        bench.engine.cancel("owner")
    bench.run()
    assert bench.outcome("other").text == Bench().answer(make_job("other", SHARED + "two")).text


def test_a_job_without_an_answer_warms_the_cache() -> None:
    bench = Bench()
    first = bench.answer(make_job("first", SHARED, max_tokens=0))
    assert (first.text, first.done.num_completion_tokens) == ("", 0)
    assert computed_tokens(bench) == len(SHARED)
    second = bench.answer(make_job("second", SHARED + "two", max_tokens=1))
    assert second.done.num_cached_tokens == len(SHARED)


def test_other_salts_share_nothing() -> None:
    bench = Bench()
    bench.answer(make_job("first", SHARED, salt="alice"))
    assert bench.answer(make_job("second", SHARED, salt="bob")).done.num_cached_tokens == 0


def test_a_job_may_refuse_cached_cells() -> None:
    bench = Bench()
    bench.answer(make_job("first", SHARED))
    second = bench.answer(make_job("second", SHARED, cache_prompt=False))
    assert second.done.num_cached_tokens == 0


def test_cells_of_a_cancelled_prefill_are_reused_as_far_as_they_go() -> None:
    bench = Bench(step_token_budget=10)
    bench.add(make_job("first", SHARED))
    bench.step(3)
    bench.engine.cancel("first")
    second = bench.answer(make_job("second", SHARED))
    assert second.done.num_cached_tokens == 30
    assert second.text == Bench().answer(make_job("x", SHARED)).text
