"""Whatever a backend's call returns, one job pays at most, and the others say what they would."""

from itertools import pairwise

import pytest

from inference.backend.base import DecodeError, Rows, Slice
from inference.protocol.errors import ErrorCode
from inference.protocol.events import FinishReason, PromptLogprobs
from tests.inference.engine.fakes import Bench, make_job

ABORTED, ALLOCATION_FAILED, COMPUTE_FAILED, INVALID = 2, -2, -3, -1


class FlakyBench(Bench):
    """A bench whose backend fails a number of calls, perhaps with a part of them computed."""

    def break_next(self, codes: list[int], *, is_partial: bool = False) -> None:
        decode = self.backend.decode

        def flaky(slices: list[Slice]) -> Rows:
            if not codes:
                return decode(slices)
            code = codes.pop(0)
            if is_partial:
                first = slices[0]
                decode([Slice(first.seq_id, first.start, first.tokens, 0)])
            raise DecodeError(code)

        self.backend.decode = flaky  # type: ignore[method-assign, assignment]


JOBS = [make_job(f"job{i}", f"{i} prompt", salt=str(i), max_tokens=9) for i in range(3)]


def check_answers(bench: Bench) -> None:
    for job in JOBS:
        assert bench.outcome(job.id).text == Bench().answer(job).text
    assert bench.backend.num_open_samplers == 0


@pytest.mark.parametrize("is_partial", [False, True])
@pytest.mark.parametrize("code", [ABORTED, ALLOCATION_FAILED, COMPUTE_FAILED, INVALID])
@pytest.mark.parametrize("when", [0, 3])
def test_a_call_that_fails_once_costs_nobody_anything(
    code: int, when: int, is_partial: bool
) -> None:
    bench = FlakyBench()
    for job in JOBS:
        bench.add(job)
    bench.step(when)
    bench.break_next([code], is_partial=is_partial)
    bench.run()
    check_answers(bench)


def test_what_a_bug_left_half_changed_is_lent_to_nobody() -> None:
    """A slot may have other tokens by then than the cache believes."""
    bench, prompt = Bench(num_slots=2), "a prompt of more than a few letters"
    bench.answer(make_job("other", "another beginning that has its slot", salt="b"))
    bench.answer(make_job("first", prompt))
    copy = bench.backend.copy_prefix

    def copy_and_break(source: int, target: int, num_tokens: int) -> int:
        copy(source, target, num_tokens)
        raise ZeroDivisionError

    bench.backend.copy_prefix = copy_and_break  # type: ignore[method-assign]
    for job_id in ("second", "third"):
        bench.add(make_job(job_id, prompt))
    with pytest.raises(ZeroDivisionError):
        bench.step()
    bench.engine.fail_all(ErrorCode.ENGINE_FAILED, "The engine failed.")
    bench.backend.copy_prefix = copy  # type: ignore[method-assign]
    for salt in ("b", "salt"):
        job = make_job(f"again {salt}", "another beginning that has its slot", salt=salt)
        assert bench.answer(job).text == Bench().answer(job).text


@pytest.mark.parametrize("when", [1, 4])
def test_a_model_that_cannot_step_back_computes_again(when: int) -> None:
    bench = FlakyBench(state_window=0)
    for job in JOBS:
        bench.add(job)
    bench.step(when)
    bench.break_next([COMPUTE_FAILED], is_partial=True)
    bench.run()
    check_answers(bench)


def test_a_model_that_cannot_step_back_does_not_try_for_ever() -> None:
    bench = FlakyBench(state_window=0)
    bench.add(JOBS[0])
    bench.step(2)
    bench.break_next([COMPUTE_FAILED] * 100, is_partial=True)
    bench.run()
    assert bench.outcome("job0").failed.code == ErrorCode.ENGINE_FAILED


def test_a_call_that_fails_alone_too_ends_its_job_only() -> None:
    bench = Bench(fails_for=lambda piece: piece.seq_id == 1 and piece.start > 8)
    for job in JOBS:
        bench.add(job)
    bench.run()
    failed = bench.outcome("job1").failed
    assert (failed.code, failed.num_completion_tokens > 0) == (ErrorCode.ENGINE_FAILED, True)
    for job_id in ("job0", "job2"):
        assert bench.outcome(job_id).done.num_completion_tokens == 9


def test_held_jobs_have_deadlines_too() -> None:
    """A job that waits for another's prefix has a slot, but nothing computed."""
    shared = "a beginning that many share, " * 4
    bench = Bench(step_token_budget=16)
    bench.add(make_job("owner", shared + "one"))
    bench.add(make_job("held", shared + "two", deadline=1500.0))
    bench.step()
    bench.now = 2000.0
    bench.run()
    assert bench.outcome("held").failed.code == ErrorCode.DEADLINE_EXCEEDED
    assert bench.outcome("owner").done.finish_reason is FinishReason.LENGTH


class TestPromptLogprobs:
    def told(self, bench: Bench, job_id: str) -> list[PromptLogprobs]:
        return [e for e in bench.outcome(job_id).events if isinstance(e, PromptLogprobs)]

    @pytest.mark.parametrize("budget", [4, 7, 100])
    def test_each_token_of_the_prompt_is_judged_once(self, budget: int) -> None:
        bench = Bench(step_token_budget=budget)
        job = make_job(prompt="hello there, world", num_prompt_logprobs=2)
        bench.answer(job)
        told = self.told(bench, "job")
        assert told[0].first_index == 0
        judged = [one.chosen.id for event in told for one in event.logprobs]
        assert judged == list(job.prompt_tokens)
        for before, after in pairwise(told):
            assert after.first_index == before.first_index + len(before.logprobs)

    def test_what_is_judged_is_computed_whatever_the_cache_has(self) -> None:
        bench = Bench()
        bench.answer(make_job("first", "hello there, world"))
        again = bench.answer(make_job("again", "hello there, world", num_prompt_logprobs=0))
        assert again.done.num_cached_tokens == 0
        assert sum(len(event.logprobs) for event in self.told(bench, "again")) == 18

    def test_who_comes_back_from_waiting_is_not_judged_twice(self) -> None:
        bench = Bench(num_slots=2, context_length=400, is_kv_unified=True, kv_cells=560)
        for name in ("first", "second"):
            bench.add(make_job(name, name * 3, max_tokens=None, num_prompt_logprobs=0))
        bench.run()
        assert bench.engine.stats().num_jobs_preempted
        for name in ("first", "second"):
            assert sum(len(e.logprobs) for e in self.told(bench, name)) == len(name) * 3
