"""A job whose replica died goes on elsewhere behind what was told, and nobody sees a seam."""

from typing import Any

import msgspec
import pytest

from inference.protocol.events import FinishReason, Tokens
from inference.protocol.jobs import GenerationJob
from inference.protocol.sampling import SamplingParams
from tests.inference.engine.fakes import Bench, Outcome, make_job, say

GREEDY = SamplingParams(temperature=0)
ANSWER = "Zoë said: EN, then 🧑‍🚀, then ENDLESS words"


def resume(outcome: Outcome, job: GenerationJob, num_events: int) -> tuple[str, GenerationJob]:
    """Give what a client has after some events, and the job of the next attempt."""
    told = [event for event in outcome.events if isinstance(event, Tokens)][:num_events]
    tokens = tuple(token for event in told for token in event.token_ids)
    text = "".join(event.text for event in told)
    return text, msgspec.structs.replace(job, emitted_tokens=tokens, attempt=2)


@pytest.mark.parametrize("is_deterministic", [False, True])
@pytest.mark.parametrize("num_events", [0, 1, 5, 17, 40])
@pytest.mark.parametrize("stop", [(), ("ENDED", "less"), ("END",)])
def test_text_and_tokens_go_on_where_they_stopped(
    num_events: int, stop: tuple[str, ...], is_deterministic: bool
) -> None:
    def bench() -> Bench:
        return Bench(next_token=say(ANSWER, 5), is_deterministic=is_deterministic, prefill_chunk=6)

    job = make_job(max_tokens=80, stop=stop, sampling=GREEDY)
    whole = bench().answer(job)
    text, again = resume(whole, job, num_events)
    rest = bench().answer(again)
    assert text + rest.text == whole.text
    assert [*again.emitted_tokens, *rest.token_ids] == whole.token_ids
    assert rest.done.num_completion_tokens == whole.done.num_completion_tokens
    assert rest.done.finish_reason is whole.done.finish_reason
    assert rest.done.stop_word == whole.done.stop_word


def test_every_token_of_an_answer_is_a_place_to_go_on() -> None:
    job = make_job(max_tokens=30, sampling=GREEDY)
    whole = Bench().answer(job)
    for num_events in range(30):
        for is_deterministic in (False, True):
            text, again = resume(whole, job, num_events)
            rest = Bench(is_deterministic=is_deterministic).answer(again)
            assert text + rest.text == whole.text


@pytest.mark.parametrize(
    ("fields", "answer"),
    [({"max_tokens": 4}, "a long one"), ({}, "end"), ({"stop": ("op",)}, "stop here")],
)
def test_a_job_that_had_told_all_but_its_end_ends_without_a_step(
    fields: dict[str, Any], answer: str
) -> None:
    job = make_job(**{"max_tokens": 50} | fields)
    whole = Bench(next_token=say(answer, 5)).answer(job)
    again = msgspec.structs.replace(job, emitted_tokens=tuple(whole.token_ids))
    bench = Bench(next_token=say(answer, 5))
    rest = bench.answer(again)
    assert not bench.backend.batches
    assert rest.done.finish_reason is whole.done.finish_reason
    assert rest.done.num_completion_tokens == whole.done.num_completion_tokens


def test_what_was_told_comes_in_slices_and_one_by_one_where_that_matters() -> None:
    job = make_job(max_tokens=40, sampling=GREEDY)
    _, again = resume(Bench().answer(job), job, 30)
    in_slices, one_by_one = Bench(), Bench(is_deterministic=True)
    for bench in (in_slices, one_by_one):
        bench.answer(again)
    assert in_slices.backend.batches[0] == ((0, 35),)
    assert one_by_one.backend.batches[-39:] == [((0, 1),)] * 39


def test_what_another_machine_told_stays_true(caplog: pytest.LogCaptureFixture) -> None:
    """Where other kernels would have said something else, the answer goes on from what was said."""
    bench = Bench(next_token=say("abcdef", 5), is_deterministic=True)
    elsewhere = tuple(2 + byte for byte in b"abX")
    rest = bench.answer(make_job(max_tokens=6, emitted_tokens=elsewhere, sampling=GREEDY))
    assert rest.text == "def"
    assert rest.done.num_completion_tokens == 6
    assert "not its own here" in caplog.text
    assert bench.backend.num_open_samplers == 0


@pytest.mark.parametrize("can_shift", [False, True])
@pytest.mark.parametrize("is_deterministic", [False, True])
def test_a_shifted_context_can_be_continued(is_deterministic: bool, can_shift: bool) -> None:
    fields: dict[str, Any] = {
        "context_length": 32,
        "can_shift": can_shift,
        "is_context_shifting": True,
        "is_deterministic": is_deterministic,
    }
    job = make_job(max_tokens=120, sampling=GREEDY)
    whole = Bench(**fields).answer(job)
    for num_events in (20, 31, 50, 100, 119):
        _, again = resume(whole, job, num_events)
        rest = Bench(**fields).answer(again)
        assert [*again.emitted_tokens, *rest.token_ids] == whole.token_ids


def test_resumed_jobs_share_prefixes_like_others() -> None:
    job = make_job("first", "a prompt of some length, and more of it", max_tokens=30)
    bench = Bench()
    whole = bench.answer(job)
    _, again = resume(whole, job, 20)
    rest = bench.answer(msgspec.structs.replace(again, id="again"))
    assert rest.done.num_cached_tokens == len(job.prompt_tokens)
    assert rest.done.timings.num_prompt_computed == 0
    assert rest.done.finish_reason is FinishReason.LENGTH
