"""One step after another, over the fake backend that checks every position."""

import random
from typing import Any

import pytest

from inference.backend.fake import EOS, FIRST_BYTE
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Failed, FinishReason, Progress, Started, Tokens
from inference.protocol.jobs import EmbeddingJob, GenerationJob
from tests.inference.engine.fakes import FAR_DEADLINE, Bench, Outcome, make_job, say


def test_a_job_starts_streams_and_ends() -> None:
    bench = Bench(next_token=say("hi there", 5))
    outcome = bench.answer(make_job(max_tokens=20))
    assert outcome.events[0] == Started(0, 0)
    assert outcome.pieces == [*"hi there", ""]
    assert outcome.token_ids == [FIRST_BYTE + byte for byte in b"hi there"] + [EOS]
    done = outcome.done
    assert done.finish_reason is FinishReason.EOS
    assert (done.num_prompt_tokens, done.num_completion_tokens) == (5, 9)
    assert not bench.engine.has_work


@pytest.mark.parametrize("max_tokens", [1, 2, 3])
def test_exactly_max_tokens_are_generated(max_tokens: int) -> None:
    outcome = Bench().answer(make_job(max_tokens=max_tokens))
    assert outcome.done.num_completion_tokens == len(outcome.token_ids) == max_tokens
    assert outcome.done.finish_reason is FinishReason.LENGTH
    assert not outcome.done.truncated


def test_no_tokens_asked_for_means_no_step() -> None:
    bench = Bench()
    outcome = bench.answer(make_job(max_tokens=0, cache_prompt=False))
    assert (outcome.text, outcome.done.num_completion_tokens) == ("", 0)
    assert outcome.done.num_prompt_tokens == 5
    assert bench.backend.batches == []


def test_without_stream_all_text_comes_in_one_event_at_the_end() -> None:
    outcome = Bench(next_token=say("hi there", 5)).answer(make_job(max_tokens=20, stream=False))
    assert outcome.pieces == ["hi there"]
    assert len(outcome.token_ids) == 9


def test_jobs_share_the_batch_and_answer_as_if_alone() -> None:
    jobs = [make_job(f"job{i}", "prompt " * (i + 1), salt=str(i), max_tokens=9) for i in range(4)]
    alone = [Bench().answer(job).text for job in jobs]
    bench = Bench()
    for job in jobs:
        bench.add(job)
    bench.run()
    assert [bench.outcome(job.id).text for job in jobs] == alone
    assert bench.engine.stats().mean_batch == 4


def test_a_job_joins_between_two_steps() -> None:
    bench = Bench()
    bench.add(make_job("first", max_tokens=10))
    bench.step(3)
    bench.add(make_job("second", "another", max_tokens=3))
    bench.step(3)
    assert bench.outcome("second").token_ids and bench.outcome("first").token_ids
    assert (0, 1) in bench.backend.batches[-1]
    assert (1, 1) in bench.backend.batches[-1]


def test_waiting_jobs_are_seated_in_order_of_arrival() -> None:
    bench = Bench(num_slots=2)
    for index in range(6):
        bench.add(make_job(f"job{index}", f"prompt {index}"))
    bench.step()
    assert (bench.engine.stats().num_running, bench.engine.stats().num_waiting) == (2, 4)
    bench.run()
    starts = [job for job, event in bench.events if isinstance(event, Started)]
    assert starts == [f"job{index}" for index in range(6)]


def test_the_lowest_free_slot_is_taken_first() -> None:
    bench = Bench()
    for index, max_tokens in enumerate([9, 2, 2]):
        bench.add(make_job(f"job{index}", f"{index} prompt", max_tokens=max_tokens))
    bench.step(3)
    bench.add(make_job("next", "something else"))
    bench.step()
    assert bench.outcome("next").started.slot == 1


def test_jobs_that_come_together_are_seated_by_length() -> None:
    bench = Bench()
    for job_id, prompt in (("long", "x" * 9), ("short", "y"), ("middle", "z" * 4)):
        bench.add(make_job(job_id, prompt))
    bench.step()
    slots = {job: bench.outcome(job).started.slot for job in ("short", "middle", "long")}
    assert slots == {"short": 0, "middle": 1, "long": 2}


def test_all_events_of_a_step_come_in_one_call() -> None:
    bench = Bench()
    for index in range(3):
        bench.add(make_job(f"job{index}", f"{index} prompt"))
    bench.step()
    assert bench.num_sink_calls == 1
    assert sum(isinstance(event, Tokens) for _, event in bench.events) == 3


def test_a_long_prompt_is_computed_in_slices_and_tells_its_progress() -> None:
    bench = Bench(step_token_budget=10)
    outcome = bench.answer(make_job(prompt="x" * 25, max_tokens=1))
    told = [event for event in outcome.events if isinstance(event, Progress)]
    assert told == [Progress(9, 25), Progress(17, 25), Progress(25, 25)]
    assert [sum(n for _, n in batch) for batch in bench.backend.batches] == [9, 8, 8]


def test_a_short_prompt_tells_no_progress() -> None:
    assert not any(isinstance(e, Progress) for e in Bench().answer(make_job()).events)


@pytest.mark.parametrize("when", [0, 1, 3])
def test_cancel_frees_the_slot_before_the_next_step(when: int) -> None:
    bench = Bench(num_slots=1, step_token_budget=4)
    bench.add(make_job("gone", "a prompt of some length", max_tokens=50))
    bench.add(make_job("next"))
    bench.step(when)
    bench.engine.cancel("gone")
    bench.step()
    assert bench.outcome("gone").done.finish_reason is FinishReason.CANCELLED
    assert bench.outcome("next").started.slot == 0
    bench.run()
    assert bench.outcome("next").text == Bench().answer(make_job("next")).text


def test_cancelling_a_waiting_job_leaves_the_running_one_alone() -> None:
    bench = Bench(num_slots=1)
    bench.add(make_job("stays", max_tokens=6))
    bench.add(make_job("goes", "other"))
    bench.step()
    bench.engine.cancel("goes")
    bench.engine.cancel("unknown")
    bench.run()
    assert bench.outcome("goes").done.finish_reason is FinishReason.CANCELLED
    assert bench.outcome("stays").done.num_completion_tokens == 6


def test_a_prompt_that_fills_the_context_is_refused_with_numbers() -> None:
    bench = Bench(context_length=16)
    for size in (16, 17):
        with pytest.raises(EngineError, match=rf"{size} tokens.*16 tokens") as caught:
            bench.add(make_job(prompt="x" * size))
        assert caught.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED
    outcome = bench.answer(make_job(prompt="x" * 15, max_tokens=None))
    assert outcome.done.num_completion_tokens == 1
    assert outcome.done.finish_reason is FinishReason.LENGTH
    assert outcome.done.truncated


def test_a_full_context_ends_one_job_and_no_other() -> None:
    bench = Bench(context_length=32)
    bench.add(make_job("long", "x" * 28, max_tokens=1000))
    bench.add(make_job("short", max_tokens=20))
    bench.run()
    assert bench.outcome("long").done.truncated
    assert bench.outcome("long").done.num_completion_tokens == 4
    assert bench.outcome("short").done.num_completion_tokens == 20
    assert not bench.outcome("short").done.truncated


def test_an_empty_prompt_starts_from_the_start_token() -> None:
    outcome = Bench().answer(make_job(prompt=""))
    assert outcome.done.num_prompt_tokens == 1
    assert outcome.text


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"prompt_tokens": (3, -1)}, ErrorCode.INVALID_TOKEN_ID),
        ({"prompt_tokens": (3, 258)}, ErrorCode.INVALID_TOKEN_ID),
        ({"num_logprobs": 2**31}, ErrorCode.INVALID_SAMPLING),
    ],
)
def test_what_can_never_run_is_refused_at_once(fields: dict[str, Any], code: ErrorCode) -> None:
    bench = Bench()
    with pytest.raises(EngineError) as caught:
        bench.add(make_job(**fields))
    assert caught.value.code is code
    assert bench.backend.num_open_samplers == 0


def test_a_bad_token_is_named_by_position() -> None:
    with pytest.raises(EngineError, match="Token id 999 at position 1"):
        Bench().add(make_job(prompt_tokens=(3, 999)))


def test_an_embedding_job_is_of_the_wrong_kind() -> None:
    job = EmbeddingJob(
        id="e", deployment="d", owner="o", gateway="g", inputs=((3,),), deadline=FAR_DEADLINE
    )
    with pytest.raises(EngineError) as caught:
        Bench().add(job)  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.WRONG_MODEL_KIND


def test_a_failing_step_costs_only_its_culprit() -> None:
    poison = FIRST_BYTE + ord("!")
    bench = Bench(fails_for=lambda piece: poison in piece.tokens)
    bench.add(make_job("good", "hello", max_tokens=6))
    bench.step(2)
    bench.add(make_job("bad", "boo!", max_tokens=6))
    bench.add(make_job("late", "hallo", max_tokens=6))
    bench.run()
    assert bench.outcome("bad").failed.code == ErrorCode.ENGINE_FAILED
    for job, prompt in (("good", "hello"), ("late", "hallo")):
        assert bench.outcome(job).text == Bench().answer(make_job(job, prompt, max_tokens=6)).text
    assert bench.backend.num_open_samplers == 0


def test_a_deadline_keeps_partial_text_and_fails_what_has_none() -> None:
    bench = Bench(num_slots=1)
    bench.add(make_job("partial", max_tokens=100, deadline=1500.0))
    bench.add(make_job("waiting", deadline=1500.0))
    bench.step(3)
    bench.now = 2000.0
    bench.run()
    assert bench.outcome("partial").done.finish_reason is FinishReason.LENGTH
    assert bench.outcome("partial").done.num_completion_tokens == 3
    assert bench.outcome("waiting").failed.code == ErrorCode.DEADLINE_EXCEEDED


def test_logprobs_pair_with_tokens_and_spell_the_text() -> None:
    bench = Bench(next_token=say("hi", 5))
    outcome = bench.answer(make_job(max_tokens=9, num_logprobs=2))
    logprobs = [
        lp for event in outcome.events if isinstance(event, Tokens) for lp in event.logprobs
    ]
    assert [lp.chosen.id for lp in logprobs] == outcome.token_ids
    assert "".join(lp.chosen.bytes_latin1 for lp in logprobs) == "hi"
    assert all(lp.top[0].id == lp.chosen.id and len(lp.top) == 2 for lp in logprobs)


def test_a_sampler_that_breaks_costs_its_own_job(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.add(make_job("bad", max_tokens=5))
    bench.add(make_job("good", "other", max_tokens=5))
    broken = next(s for s in bench.engine._roster if s.job.id == "bad")
    broken.detokenizer = None  # type: ignore[assignment]
    bench.run()
    assert bench.outcome("bad").failed.code == ErrorCode.INTERNAL_ERROR
    assert bench.outcome("good").done.num_completion_tokens == 5
    assert "cannot be sampled" in caplog.text


def test_a_job_that_comes_twice_runs_once() -> None:
    bench = Bench()
    bench.add(make_job())
    bench.add(make_job())
    bench.run()
    assert bench.outcome("job").done.num_completion_tokens == 4
    assert bench.backend.num_open_samplers == 0


def test_slots_and_stats_tell_the_truth() -> None:
    bench = Bench(num_slots=2)
    bench.add(make_job(prompt="hello", max_tokens=10))
    bench.step(3)
    first, second = bench.engine.slots()
    assert (first.job, first.num_prompt_processed, first.num_decoded) == ("job", 5, 3)
    assert (first.num_remaining, second.job) == (7, "")
    bench.run()
    stats = bench.engine.stats()
    assert (stats.num_decoded_tokens, stats.num_prompt_tokens) == (10, 5)
    assert (stats.num_jobs_done, stats.num_running, stats.kv_cells_used) == (1, 0, 14)


LIVES: dict[str, dict[str, Any]] = {
    "plain": {},
    "deterministic": {"is_deterministic": True},
    "shared cells": {"is_kv_unified": True, "kv_cells": 300},
    "shifting": {"is_context_shifting": True, "context_length": 105},
    "cannot step back": {"state_window": 0},
}


@pytest.mark.parametrize("life", LIVES)
def test_random_life_keeps_every_invariant_and_every_text(life: str) -> None:
    """Jobs with shared prompts come, go, fail and are cancelled; all that is told is true."""
    draw = random.Random(life)
    for round_number in range(8):
        bench = Bench(
            num_slots=draw.randint(1, 5),
            step_token_budget=draw.randint(6, 60),
            prefill_chunk=8,
            fails_for=lambda _: draw.random() < 0.004,
            **LIVES[life],
        )
        jobs = {}
        for step in range(60):
            if draw.random() < 0.4:
                job = make_random_job(draw, f"{round_number}-{step}")
                jobs[job.id] = job
                bench.add(job)
            if jobs and draw.random() < 0.15:
                bench.engine.cancel(draw.choice(list(jobs)))
            bench.step()
        bench.run()
        assert bench.backend.num_open_samplers == 0
        for job in jobs.values():
            check_truth(bench.outcome(job.id), Bench(**LIVES[life]).answer(job))


def make_random_job(draw: random.Random, job_id: str) -> GenerationJob:
    """Make a job whose prompt may begin as others do."""
    return make_job(
        job_id,
        "shared beginning of a prompt " * draw.randint(0, 3) + "x" * draw.randint(0, 9),
        salt=draw.choice("ab"),
        max_tokens=draw.randint(0, 25),
        stream=draw.random() < 0.7,
    )


def check_truth(outcome: Outcome, alone: Outcome) -> None:
    """Compare what was told of a job with what is told when nothing ever happens."""
    end = outcome.events[-1]
    if isinstance(end, Failed) or outcome.done.finish_reason is FinishReason.CANCELLED:
        assert alone.text.startswith(outcome.text)
    else:
        assert outcome.text == alone.text


def test_failures_carry_how_far_the_job_was() -> None:
    bench = Bench()
    bench.add(make_job(max_tokens=50))
    bench.step(3)
    bench.engine.fail_all(ErrorCode.ENGINE_LOST, "The replica stopped.")
    bench.engine.flush()
    assert bench.outcome("job").failed == Failed(
        ErrorCode.ENGINE_LOST, "The replica stopped.", True, 5, 3
    )


def test_a_long_answer_that_is_wanted_whole_is_told_in_large_parts() -> None:
    outcome = Bench(next_token=say("x" * 70, 5)).answer(make_job(max_tokens=70, stream=False))
    parts = [len(event.token_ids) for event in outcome.events if isinstance(event, Tokens)]
    assert parts == [32, 32, 6]
