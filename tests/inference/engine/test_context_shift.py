"""A full context may drop what is oldest and go on."""

import pytest

from inference.protocol.events import FinishReason
from tests.inference.engine.fakes import Bench, make_job, tokens_of


def window_of(bench: Bench) -> list[int]:
    return bench.backend.sequences[0]


def test_without_shifting_a_full_context_is_the_end() -> None:
    outcome = Bench(context_length=32).answer(make_job(max_tokens=100))
    assert outcome.done.num_completion_tokens == 32 - 5
    assert outcome.done.truncated


@pytest.mark.parametrize("can_shift", [True, False])
def test_a_long_answer_goes_on_beyond_the_context(can_shift: bool) -> None:
    bench = Bench(context_length=32, is_context_shifting=True, can_shift=can_shift)
    outcome = bench.answer(make_job(max_tokens=100))
    assert len(outcome.token_ids) == outcome.done.num_completion_tokens == 100
    assert outcome.done.finish_reason is FinishReason.LENGTH
    assert outcome.done.truncated


@pytest.mark.parametrize("can_shift", [True, False])
def test_what_is_dropped_is_half_of_what_follows_the_kept_part(can_shift: bool) -> None:
    bench = Bench(context_length=32, is_context_shifting=True, can_shift=can_shift)
    bench.add(make_job(max_tokens=30, num_keep=-1))
    while len(said := bench.outcome("job").token_ids) < 29:
        bench.step()
    num_dropped = (32 - 5) // 2
    assert window_of(bench) == [*tokens_of("hello"), *said[num_dropped:28]]


def test_moved_and_recomputed_windows_say_the_same() -> None:
    """The fake computes a row from all tokens before it, wherever they were computed."""
    texts = {
        Bench(context_length=24, is_context_shifting=True, can_shift=can_shift)
        .answer(make_job(max_tokens=200, num_keep=3))
        .text
        for can_shift in (True, False)
    }
    assert len(texts) == 1


@pytest.mark.parametrize("num_keep", [-1, 0, 3, 10**6])
def test_any_wish_to_keep_leaves_room_to_go_on(num_keep: int) -> None:
    bench = Bench(context_length=16, is_context_shifting=True)
    outcome = bench.answer(make_job(prompt="x" * 15, max_tokens=60, num_keep=num_keep))
    assert outcome.done.num_completion_tokens == 60


def test_who_names_no_bound_gets_what_the_context_holds() -> None:
    bench = Bench(context_length=32, is_context_shifting=True)
    assert bench.answer(make_job(max_tokens=None)).done.num_completion_tokens == 32 - 5


def test_a_shifted_context_lends_only_what_it_kept() -> None:
    prompt = "a prompt that is kept as a whole, all of it"
    bench = Bench(context_length=80, is_context_shifting=True)
    first = bench.answer(make_job("first", prompt, max_tokens=120, num_keep=-1))
    second = make_job("second", prompt + first.text[:30], max_tokens=5)
    outcome = bench.answer(second)
    assert outcome.done.num_cached_tokens == len(prompt)
    assert outcome.text == Bench(context_length=80).answer(second).text


@pytest.mark.parametrize("stream", [True, False])
def test_others_notice_nothing(stream: bool) -> None:
    bench = Bench(context_length=40, is_context_shifting=True)
    jobs = [
        make_job(f"job{size}", "x" * size, max_tokens=90, salt=str(size), stream=stream)
        for size in (5, 20, 35)
    ]
    for job in jobs:
        bench.add(job)
    bench.run()
    for job in jobs:
        alone = Bench(context_length=40, is_context_shifting=True).answer(job)
        assert bench.outcome(job.id).token_ids == alone.token_ids
        assert bench.outcome(job.id).text == alone.text


def test_a_shared_cache_computes_what_moved_anew() -> None:
    bench = Bench(context_length=40, is_context_shifting=True, is_kv_unified=True, kv_cells=160)
    job = make_job(max_tokens=100)
    alone = Bench(context_length=40, is_context_shifting=True).answer(job)
    assert bench.answer(job).token_ids == alone.token_ids


def test_a_shifted_context_has_computed_its_prompt_all_the_same() -> None:
    bench = Bench(context_length=32, is_context_shifting=True)
    done = bench.answer(make_job(prompt="x" * 30, max_tokens=9)).done
    assert done.timings.num_prompt_computed == done.num_prompt_tokens == 30
