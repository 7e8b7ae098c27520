"""Answers that end by the form of their text or by the clock, and jobs whose pace is told."""

from typing import Any

import pytest

from inference.protocol.events import FinishReason, Pace, Progress, Tokens
from tests.inference.engine.fakes import Bench, make_job, say

PROMPT = "hello"


def answer(text: str, **fields: Any) -> tuple[str, FinishReason]:
    bench = Bench(next_token=say(text, len(PROMPT)))
    outcome = bench.answer(make_job(prompt=PROMPT, max_tokens=100, **fields))
    return outcome.text, outcome.done.finish_reason


def test_a_line_with_too_little_indentation_ends_the_answer() -> None:
    assert answer("a\n  b\nc\n", min_indent=2) == ("a\n  b\n", FinishReason.LENGTH)
    assert answer("a\n  b", min_indent=2) == ("a\n  b", FinishReason.EOS)


def test_a_stop_string_wins_over_indentation() -> None:
    assert answer("a\n  b\nc", min_indent=2, stop=("b",)) == ("a\n  ", FinishReason.STOP)


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, 5), (2.0, 2)])
def test_an_answer_that_has_had_its_time_ends_with_its_line(seconds: float, expected: int) -> None:
    bench = Bench(next_token=say("a\nb\nc", len(PROMPT)))
    bench.add(make_job(prompt=PROMPT, max_tokens=100, line_limit_ms=1000))
    bench.step()
    bench.now += seconds
    bench.step(20)
    assert len(bench.outcome("job").text) == expected


def test_the_pace_is_told_where_it_is_wanted() -> None:
    bench = Bench()
    bench.add(make_job(prompt=PROMPT, max_tokens=3, is_timed=True))
    for _ in range(5):
        bench.now += 0.5
        bench.step()
    events = bench.outcome("job").events
    assert [event for event in events if isinstance(event, Progress)] == [Progress(5, 5, 0.0)]
    tokens = [at for at, event in enumerate(events) if isinstance(event, Tokens)]
    assert len(tokens) == 3
    paces = [event for at in tokens if isinstance(event := events[at - 1], Pace)]
    assert [pace.timings.predicted_ms for pace in paces] == [0, 500, 1000]


def test_other_jobs_tell_no_pace() -> None:
    assert not any(isinstance(event, Pace) for event in Bench().answer(make_job()).events)


@pytest.mark.parametrize(("wanted", "dropped"), [(0, 15), (10, 10), (1, 3), (1000, 30)])
def test_a_shift_discards_what_the_job_says_within_reason(wanted: int, dropped: int) -> None:
    bench = Bench(context_length=32, is_context_shifting=True)
    bench.add(make_job(max_tokens=30, num_discard=wanted))
    while len(bench.outcome("job").token_ids) < 29:
        bench.step()
    assert len(bench.backend.sequences[0]) == 33 - dropped
