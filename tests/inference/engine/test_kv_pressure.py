"""Sequences that share the cells of one cache wait, make room and come back, and lose nothing."""

import random

import pytest

from inference.protocol.errors import ErrorCode
from inference.protocol.events import FinishReason, Started, Tokens
from inference.protocol.jobs import GenerationJob
from tests.inference.engine.fakes import Bench, make_job


def make_bench(num_cells: int, **profile: object) -> Bench:
    return Bench(is_kv_unified=True, kv_cells=num_cells, **profile)  # type: ignore[arg-type]


def running_jobs(bench: Bench) -> set[str]:
    return {slot.job for slot in bench.engine.slots() if slot.job}


def check_as_if_alone(bench: Bench, jobs: list[GenerationJob]) -> None:
    """Compare what clients saw with answers that nothing ever disturbed."""
    for job in jobs:
        outcome, alone = bench.outcome(job.id), Bench().answer(job)
        assert outcome.token_ids == alone.token_ids
        assert outcome.text == alone.text
        assert outcome.done.finish_reason is alone.done.finish_reason
        assert sum(isinstance(event, Started) for event in outcome.events) == 1


def test_a_job_waits_until_its_prompt_and_its_bound_fit() -> None:
    bench = make_bench(64)
    jobs = [make_job("first", "x" * 20, max_tokens=30), make_job("second", "y" * 10, max_tokens=10)]
    for job in jobs:
        bench.add(job)
    bench.step(5)
    assert running_jobs(bench) == {"first"}
    bench.run()
    check_as_if_alone(bench, jobs)
    assert bench.engine.stats().num_jobs_preempted == 0


def test_who_fits_does_not_overtake_who_waits_for_room() -> None:
    bench = make_bench(64)
    for job_id, max_tokens in (("first", 30), ("large", 40), ("small", 2)):
        bench.add(make_job(job_id, job_id, max_tokens=max_tokens))
    bench.run()
    starts = [job for job, event in bench.events if isinstance(event, Started)]
    assert starts == ["first", "large", "small"]


def test_cells_that_nobody_uses_are_dropped_before_anybody_waits() -> None:
    bench = make_bench(64)
    bench.answer(make_job("old", "o" * 40, max_tokens=2))
    assert bench.engine.stats().kv_cells_used > 40
    new = make_job("new", "n" * 40, max_tokens=20)
    assert bench.answer(new).text == Bench().answer(new).text


def test_what_lies_in_the_slot_of_one_who_waits_makes_room_too() -> None:
    """Who waits for another's beginning has not begun, and keeps no cells from it."""
    bench = make_bench(220, num_slots=2, context_length=220, prefix_host_bytes=0)
    bench.add(make_job("short", "x", max_tokens=9))
    bench.answer(make_job("old", "o" * 205, max_tokens=2))
    shared = "a beginning of two, " * 3
    bench.add(make_job("first", shared, max_tokens=90))
    bench.add(make_job("second", shared + "second", max_tokens=2))
    bench.run()
    assert bench.outcome("first").done.num_completion_tokens == 90
    assert bench.outcome("second").done.num_cached_tokens == len(shared)


def test_answers_without_a_bound_share_the_cells_until_one_makes_room() -> None:
    bench = make_bench(560, num_slots=2, context_length=400)
    jobs = [make_job(name, name, max_tokens=None) for name in ("first", "second")]
    for job in jobs:
        bench.add(job)
    bench.step(2)
    assert running_jobs(bench) == {"first", "second"}
    bench.run()
    assert bench.engine.stats().num_jobs_preempted >= 1
    for job in jobs:
        alone = Bench(context_length=400).answer(job)
        assert bench.outcome(job.id).token_ids == alone.token_ids
        assert bench.outcome(job.id).done.truncated


def preempting_bench() -> tuple[Bench, list[GenerationJob]]:
    """Start three answers without a bound that will not fit together."""
    bench = make_bench(800, num_slots=3, context_length=500)
    jobs = [
        make_job("first", "a" * 5, max_tokens=None),
        make_job("second", "b" * 5, max_tokens=None, priority=1),
        make_job("third", "c" * 5, max_tokens=None, priority=1),
    ]
    for job in jobs:
        bench.add(job)
    return bench, jobs


def test_the_victim_is_of_the_least_priority_and_the_others_go_on() -> None:
    bench, _ = preempting_bench()
    while not bench.engine.stats().num_jobs_preempted:
        bench.step()
    assert running_jobs(bench) == {"second", "third"}
    num_told = len(bench.outcome("second").token_ids)
    bench.step()
    assert len(bench.outcome("second").token_ids) == num_told + 1


def test_the_victim_goes_on_where_it_stopped() -> None:
    bench, jobs = preempting_bench()
    bench.run()
    for job in jobs:
        outcome = bench.outcome(job.id)
        assert outcome.token_ids == Bench(context_length=500).answer(job).token_ids
        assert sum(isinstance(event, Started) for event in outcome.events) == 1
    assert bench.backend.num_open_samplers == 0


def test_a_victim_can_be_cancelled_while_it_waits() -> None:
    bench, _ = preempting_bench()
    while not bench.engine.stats().num_jobs_preempted:
        bench.step()
    bench.engine.cancel("first")
    bench.run()
    assert bench.outcome("first").done.finish_reason is FinishReason.CANCELLED
    assert bench.outcome("second").done.finish_reason is FinishReason.LENGTH


def test_a_deadline_ends_a_victim_with_what_it_has() -> None:
    bench, _ = preempting_bench()
    while not bench.engine.stats().num_jobs_preempted:
        bench.step()
    bench.now = 5e9
    bench.step()
    assert bench.outcome("first").done.finish_reason is FinishReason.LENGTH
    assert bench.outcome("first").token_ids


def test_a_library_that_finds_no_room_costs_no_job() -> None:
    """The library may count cells in another way than the engine does."""
    bench = make_bench(512, num_slots=2, context_length=200)
    assert bench.backend.cells is not None
    bench.backend.cells.num_cells = 60
    jobs = [make_job(name, name * 4, max_tokens=30) for name in ("first", "other")]
    for job in jobs:
        bench.add(job)
    bench.run()
    check_as_if_alone(bench, jobs)
    assert bench.engine.stats().num_jobs_preempted >= 1


def test_a_job_that_does_not_fit_alone_fails_and_says_why() -> None:
    bench = make_bench(512, context_length=200)
    assert bench.backend.cells is not None
    bench.backend.cells.num_cells = 30
    bench.add(make_job("large", "x" * 40))
    bench.run()
    assert bench.outcome("large").failed.code == ErrorCode.CONTEXT_LENGTH_EXCEEDED
    small = make_job("small", "fits")
    assert bench.answer(small).text == Bench().answer(small).text


@pytest.mark.parametrize("seed", range(6))
def test_random_life_under_pressure_shows_no_client_anything(seed: int) -> None:
    draw = random.Random(seed)
    bench = make_bench(
        draw.randint(330, 700),
        num_slots=draw.randint(2, 5),
        context_length=320,
        step_token_budget=draw.randint(8, 60),
        prefill_chunk=8,
    )
    jobs: list[GenerationJob] = []
    for step in range(250):
        if draw.random() < 0.06:
            prompt = "shared beginning of a prompt " * draw.randint(0, 3) + "x" * draw.randint(1, 9)
            jobs.append(
                make_job(
                    f"job{step}",
                    prompt,
                    salt=draw.choice("ab"),
                    max_tokens=draw.choice([None, 5, 60]),
                    priority=draw.choice([0, 0, 1]),
                    stream=draw.random() < 0.7,
                )
            )
            bench.add(jobs[-1])
        if jobs and draw.random() < 0.02:
            bench.engine.cancel(draw.choice(jobs).id)
        bench.step()
    bench.run()
    for job in jobs:
        outcome, alone = bench.outcome(job.id), Bench(context_length=320).answer(job)
        told = [event for event in outcome.events if isinstance(event, Tokens)]
        assert sum(len(event.token_ids) for event in told) == outcome.done.num_completion_tokens
        assert alone.token_ids[: len(outcome.token_ids)] == outcome.token_ids
        if outcome.done.finish_reason is not FinishReason.CANCELLED:
            assert outcome.token_ids == alone.token_ids
    assert bench.backend.num_open_samplers == 0
