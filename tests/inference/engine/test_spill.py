"""What is about to be overwritten is saved, comes back, and is worth it or left alone."""

import random
from pathlib import Path

import pytest

from tests.inference.engine.fakes import Bench, make_job

FIRST = "a first conversation that goes on for a while, "
SECOND = "something else altogether, said at some length, "
BYTES_PER_TOKEN = 4


def answer_in_turn(bench: Bench, *prompts: str) -> list[int]:
    """Answer prompts one after another, each right; tell how much of each was cached."""
    cached = []
    for prompt in prompts:
        outcome = bench.answer(make_job(f"after {len(bench.events)}", prompt))
        assert outcome.text == Bench().answer(make_job("x", prompt)).text
        cached.append(outcome.done.num_cached_tokens)
    return cached


def test_a_prefix_that_lost_its_slot_comes_back() -> None:
    cached = answer_in_turn(Bench(num_slots=1), FIRST, SECOND, FIRST + "more", SECOND + "more")
    assert cached == [0, 0, len(FIRST), len(SECOND)]


def test_nothing_is_saved_where_no_memory_is_given() -> None:
    bench = Bench(num_slots=1, prefix_host_bytes=0)
    assert answer_in_turn(bench, FIRST, SECOND, FIRST + "more") == [0, 0, 0]


def test_memory_keeps_to_its_limit() -> None:
    bench = Bench(num_slots=1, prefix_host_bytes=BYTES_PER_TOKEN * (len(SECOND) + 10))
    third = "now a third one that is just as long as them both are"
    cached = answer_in_turn(bench, FIRST, SECOND, third, SECOND + "more", FIRST + "more")
    assert cached == [0, 0, 0, len(SECOND), 0]


def test_conversations_spread_over_empty_slots_first() -> None:
    bench = Bench(num_slots=3, prefix_host_bytes=0)
    prompts = [FIRST, SECOND, FIRST + "more", SECOND + "more"]
    assert answer_in_turn(bench, *prompts) == [0, 0, len(FIRST), len(SECOND)]


def test_what_another_slot_has_too_is_overwritten_before_what_only_one_has() -> None:
    bench = Bench(num_slots=3, prefix_host_bytes=0)
    for name in ("a", "b"):
        bench.add(make_job(name, FIRST + name))
    bench.run()
    cached = answer_in_turn(bench, SECOND, "this is new, and has some length")
    assert cached == [0, 0]
    assert answer_in_turn(bench, SECOND + "more")[0] == len(SECOND)


def test_what_a_fork_leaves_behind_is_kept() -> None:
    bench = Bench(num_slots=1)
    start = FIRST + SECOND
    cached = answer_in_turn(bench, start, FIRST + "a fork, as long as what it leaves behind", start)
    assert cached == [0, len(FIRST), len(start) - 1]


def test_a_job_that_refuses_the_cache_leaves_nothing_and_destroys_nothing() -> None:
    bench = Bench(num_slots=1)
    bench.answer(make_job("first", FIRST))
    alone = bench.answer(make_job("alone", SECOND, cache_prompt=False))
    assert alone.done.num_cached_tokens == 0
    assert bench.engine.stats().kv_cells_used == 0
    assert answer_in_turn(bench, SECOND, FIRST + "more") == [0, len(FIRST)]


def test_neighbouring_slots_are_taken_while_others_run() -> None:
    bench = Bench(num_slots=8)
    for at in range(6):
        bench.answer(make_job(f"done{at}", f"{at} is the number of this conversation"))
    bench.add(make_job("runs", "3 is the number of this conversation, again", max_tokens=40))
    bench.step(2)
    bench.add(make_job("joins", "0 is the number of this conversation, again", max_tokens=20))
    bench.step(2)
    runs, joins = (bench.outcome(name).started for name in ("runs", "joins"))
    assert abs(runs.slot - joins.slot) == 1
    assert runs.num_cached_tokens > 30 and joins.num_cached_tokens > 30


def test_files_come_back_and_leave_nothing_behind(tmp_path: Path) -> None:
    directory = tmp_path / "spill"
    bench = Bench(
        num_slots=1,
        prefix_host_bytes=250,
        prefix_disk_bytes=10_000,
        spill_directory=directory,
    )
    prompts = [f"{at} is a conversation, and of no more than average length" for at in range(6)]
    cached = answer_in_turn(bench, *prompts, *(prompt + "!" for prompt in prompts))
    assert cached[:6] == [0] * 6
    assert sum(count > 0 for count in cached[6:]) >= 3
    assert list(directory.iterdir()) == []
    bench.engine.close()


@pytest.mark.parametrize("seed", range(12))
def test_random_life_under_all_kinds_of_pressure(seed: int, tmp_path: Path) -> None:
    """Jobs of few prefixes come, go, fail and are cancelled; who ends well ends right."""
    draw = random.Random(seed)
    is_unified = seed % 3 == 0
    bench = Bench(
        num_slots=draw.randint(1, 6),
        step_token_budget=draw.randint(8, 60),
        prefix_host_bytes=draw.choice([0, 400, 1 << 20]),
        prefix_disk_bytes=draw.choice([0, 2000]),
        is_kv_unified=is_unified,
        kv_cells=512 if is_unified else 0,
        is_deterministic=not is_unified and seed % 3 == 1,
        spill_directory=tmp_path,
    )
    bench.backend.fails_for = lambda piece: len(piece.tokens) > 1 and draw.random() < 0.02
    jobs = {}
    for step in range(80):
        if draw.random() < 0.5:
            start = draw.choice([FIRST, SECOND, FIRST + SECOND])
            prompt = start[: draw.randint(1, 99)] + "z" * draw.randint(0, 9)
            job = make_job(
                f"{step}",
                prompt,
                salt=draw.choice("aab"),
                max_tokens=draw.randint(1, 20),
                cache_prompt=draw.random() < 0.9,
            )
            jobs[job.id] = job
            bench.add(job)
        if jobs and draw.random() < 0.1:
            bench.engine.cancel(draw.choice(list(jobs)))
        bench.step()
    bench.run()
    for job in jobs.values():
        outcome = bench.outcome(job.id)
        assert Bench().answer(job).text.startswith(outcome.text)
    bench.engine.close()
