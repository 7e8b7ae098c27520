"""Models whose states cannot be cut reuse whole prefixes, and give the text they give without."""

import random

import pytest

from tests.inference.engine.fakes import Bench, make_job

SHARED = "a system prompt that many share, " * 3
RECURRENT, WINDOW = 0, 24


@pytest.fixture(params=[RECURRENT, WINDOW])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(state_window=request.param)


def test_a_conversation_goes_on_from_its_whole_prefix(bench: Bench) -> None:
    first = bench.answer(make_job("first", SHARED, max_tokens=8))
    prompt = SHARED + first.text + " more"
    second = bench.answer(make_job("second", prompt, max_tokens=8))
    assert second.done.num_cached_tokens == len(SHARED) + 7
    assert second.text == Bench().answer(make_job("x", prompt, max_tokens=8)).text


def test_the_third_of_a_kind_finds_the_state_where_the_second_left_the_first() -> None:
    bench = Bench(state_window=RECURRENT)
    cached = []
    for name in ("one", "two", "three", "four"):
        outcome = bench.answer(make_job(name, SHARED + name))
        cached.append(outcome.done.num_cached_tokens)
        assert outcome.text == Bench().answer(make_job("x", SHARED + name)).text
    assert cached[:2] == [0, 0]
    assert cached[2:] >= [len(SHARED), len(SHARED)]


def test_the_same_prompt_a_third_time_computes_one_token_of_it() -> None:
    bench = Bench(state_window=RECURRENT)
    cached = [
        bench.answer(make_job(f"job{at}", SHARED, max_tokens=3)).done.num_cached_tokens
        for at in range(4)
    ]
    assert cached == [0, 0, len(SHARED) - 1, len(SHARED) - 1]


def test_those_who_come_together_wait_for_the_one_who_pauses() -> None:
    bench = Bench(state_window=RECURRENT, num_slots=8)
    for at in range(8):
        bench.add(make_job(f"job{at}", f"{SHARED}{at} and more"))
    bench.run()
    cached = [bench.outcome(f"job{at}").done.num_cached_tokens for at in range(8)]
    assert cached[:2] == [0, 0]
    assert min(cached[2:]) >= len(SHARED)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("window", [RECURRENT, WINDOW])
def test_random_life_gives_every_text_as_without_a_cache(seed: int, window: int) -> None:
    draw = random.Random(seed)
    bench = Bench(
        state_window=window,
        num_slots=draw.randint(1, 5),
        step_token_budget=draw.randint(4, 60),
        prefix_host_bytes=draw.choice([0, 900, 1 << 20]),
    )
    jobs = {}
    for step in range(60):
        if draw.random() < 0.5:
            prompt = SHARED[: draw.choice([0, 20, 60, 99])] + "y" * draw.randint(0, 30)
            jobs[f"{step}"] = make_job(f"{step}", prompt, max_tokens=draw.randint(1, 12))
            bench.add(jobs[f"{step}"])
        bench.step()
    bench.run()
    for job in jobs.values():
        assert bench.outcome(job.id).text == Bench().answer(job).text
