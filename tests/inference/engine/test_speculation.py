"""Guesses change how fast a text comes, and nothing else."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from inference.backend.base import Slice
from inference.backend.fake import FIRST_BYTE, FakeBackend, FakeModel, letter_by_checksum
from inference.engine.speculation import Speculator
from inference.protocol.events import FinishReason, Tokens
from inference.protocol.jobs import GenerationJob
from inference.speculation.controller import Chance, Controller
from inference.speculation.drafter import Guess, Want
from tests.inference.engine.fakes import Bench, Outcome, make_job, say

ROUNDS = "to be or not to be or not to be or not to be or not to be"


def guess_all(_self: Controller, chances: Sequence[Chance], _round: float = 0.0) -> list[int]:
    """Choose every guess there is, whatever a step takes on this machine."""
    return [chance.max_drafts for chance in chances]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all guesses computed: whether they pay is another question."""
    monkeypatch.setattr(Controller, "choose", guess_all)


class Oracle:
    """A drafter that knows the right answers, and gives wrong ones as often as it is told to."""

    is_free = False
    bounds: tuple[int, ...] = ()
    priors: tuple[float, ...] = (0.5,)
    round_seconds = 0.0

    def __init__(self, next_token: Callable[[Sequence[int]], int], seed: int) -> None:
        self._next_token, self._random = next_token, random.Random(seed)
        self._error_rate = self._random.choice((0.0, 0.1, 0.5, 1.0))
        self._tokens: dict[int, list[int]] = {}

    def open(self, slot: int, tokens: list[int]) -> None:
        self._tokens[slot] = tokens

    def close(self, slot: int) -> None:
        del self._tokens[slot]

    def draft(self, wants: Sequence[Want]) -> list[Guess]:
        return [Guess(self._guess(want)) for want in wants]

    def close_all(self) -> None:
        self._tokens.clear()

    def _guess(self, want: Want) -> tuple[int, ...]:
        text = list(self._tokens[want.slot])
        for _ in range(self._random.randrange(want.num_tokens + 1)):
            token = self._next_token(text)
            is_wrong = self._random.random() < self._error_rate
            text.append(FIRST_BYTE + self._random.randrange(256) if is_wrong else token)
        return tuple(text[len(self._tokens[want.slot]) :])


def make_bench(seed: int | None = None, **options: Any) -> Bench:
    """Build an engine; with a seed, one whose guesses come from an oracle."""
    if seed is None:
        return Bench(**options)
    bench = Bench(speculation="ngram", **options)
    oracle = Oracle(bench.backend.next_token, seed)
    bench.engine._speculator = Speculator(oracle, bench.profile)
    return bench


def repeat_answer(answer: str, prompt: str) -> Bench:
    return Bench(speculation="ngram", next_token=say(answer, len(prompt)))


@pytest.mark.usefixtures("eager")
def test_a_text_that_repeats_itself_takes_fewer_steps() -> None:
    bench = repeat_answer(ROUNDS, "hello")
    outcome = bench.answer(make_job(prompt="hello", max_tokens=100))
    assert outcome.text == ROUNDS
    assert outcome.done.finish_reason is FinishReason.EOS
    assert len(bench.backend.batches) < len(ROUNDS) / 2
    assert 0 < outcome.done.num_accepted_tokens <= outcome.done.num_drafted_tokens
    stats = bench.engine.stats()
    assert stats.num_accepted_tokens == outcome.done.num_accepted_tokens
    assert stats.num_drafted_tokens == outcome.done.num_drafted_tokens
    assert stats.num_decoded_tokens == len(outcome.token_ids)


@pytest.mark.usefixtures("eager")
def test_the_cells_of_wrong_guesses_are_dropped() -> None:
    """The fake asserts that positions follow each other; here also that nothing stays behind."""
    bench = repeat_answer("ababababxabababab", "hello")
    bench.add(make_job(prompt="hello", max_tokens=30))
    while bench.engine.has_work:
        bench.step()
        held = bench.backend.sequences[0]
        assert bytes(token - FIRST_BYTE for token in held) in b"helloababababxabababab"
    assert bench.outcome("job").done.num_accepted_tokens < bench.engine.stats().num_drafted_tokens


@pytest.mark.usefixtures("eager")
def test_a_request_may_refuse_to_be_guessed_for() -> None:
    bench = repeat_answer(ROUNDS, "hello")
    outcome = bench.answer(make_job(prompt="hello", max_tokens=100, num_draft_tokens=0))
    assert (outcome.text, outcome.done.num_drafted_tokens) == (ROUNDS, 0)


@pytest.mark.usefixtures("eager")
def test_a_request_may_bound_a_guess() -> None:
    bench = repeat_answer(ROUNDS, "hello")
    bench.answer(make_job(prompt="hello", max_tokens=100, num_draft_tokens=2))
    sizes = {size for batch in bench.backend.batches[1:] for _, size in batch}
    assert max(sizes) == 3


@pytest.mark.usefixtures("eager")
def test_nothing_is_guessed_beyond_the_limit_of_a_request() -> None:
    bench = repeat_answer(ROUNDS, "hello")
    outcome = bench.answer(make_job(prompt="hello", max_tokens=25))
    assert outcome.text == ROUNDS[:25]
    assert max(map(len, bench.backend.sequences.values())) <= len("hello") + 25 - 1


@pytest.mark.usefixtures("eager")
def test_nothing_is_guessed_beyond_the_context() -> None:
    bench = Bench(speculation="ngram", context_length=24, next_token=say(ROUNDS, 5))
    outcome = bench.answer(make_job(prompt="hello", max_tokens=None))
    assert outcome.text == ROUNDS[: 24 - 5]


@pytest.mark.parametrize("profile", [{"speculation": ""}, {"is_deterministic": True}])
@pytest.mark.usefixtures("eager")
def test_it_is_off_where_it_was_not_asked_for_or_would_change_numbers(
    profile: dict[str, Any],
) -> None:
    bench = Bench(next_token=say(ROUNDS, 5), **{"speculation": "ngram"} | profile)
    assert bench.answer(make_job(max_tokens=100)).done.num_drafted_tokens == 0


@pytest.mark.usefixtures("eager")
def test_it_is_off_where_a_model_cannot_drop_a_part() -> None:
    bench = Bench(speculation="ngram", next_token=say(ROUNDS, 5), state_window=0)
    assert bench.answer(make_job(max_tokens=100)).done.num_drafted_tokens == 0


@pytest.mark.usefixtures("eager")
def test_a_small_model_guesses_where_a_deployment_has_one() -> None:
    drafting = FakeBackend(FakeModel(256), next_token=letter_by_checksum)
    bench = Bench(speculation="draft", draft_backend=drafting)
    outcome = bench.answer(make_job(max_tokens=20))
    assert outcome.text == Bench().answer(make_job(max_tokens=20)).text
    assert outcome.done.num_accepted_tokens == outcome.done.num_drafted_tokens > 0
    assert len(bench.backend.batches) < 10


def random_jobs(rng: random.Random) -> list[GenerationJob]:
    """Jobs that end in every way there is."""
    jobs = []
    for number in range(rng.randrange(1, 9)):
        prompt = "".join(rng.choice("abc ") for _ in range(rng.randrange(1, 40)))
        fields: dict[str, Any] = {"max_tokens": rng.choice((1, 2, 7, 30, None))}
        if rng.random() < 0.4:
            fields["stop"] = (rng.choice("etaoin"), rng.choice(("th", "e ", "zz")))
        if rng.random() < 0.3:
            fields["num_logprobs"] = 2
        fields["stream"] = rng.random() < 0.7
        fields["salt"] = rng.choice(("one", "two"))
        jobs.append(make_job(f"job{number}", prompt, **fields))
    return jobs


def run_all(bench: Bench, jobs: Sequence[GenerationJob], rng: random.Random) -> dict[str, Outcome]:
    """Run jobs that arrive one after another; the last is cancelled on the way."""
    for job in jobs:
        bench.add(job)
        bench.step(rng.randrange(3))
    bench.run()
    return {job.id: bench.outcome(job.id) for job in jobs}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.usefixtures("eager")
def test_every_answer_is_the_one_without_guesses(seed: int) -> None:
    """Right guesses and wrong ones, alone and in a batch, whatever ends a sequence."""
    jobs = random_jobs(random.Random(seed))
    plain = run_all(make_bench(context_length=64), jobs, random.Random(seed))
    guessed = run_all(make_bench(seed, context_length=64), jobs, random.Random(seed))
    for job in jobs:
        ours, theirs = guessed[job.id], plain[job.id]
        assert (ours.text, ours.token_ids) == (theirs.text, theirs.token_ids)
        assert ours.done.finish_reason is theirs.done.finish_reason
        assert ours.done.stop_word == theirs.done.stop_word
        if job.num_logprobs is not None:
            told = [
                one for event in ours.events if isinstance(event, Tokens) for one in event.logprobs
            ]
            assert [one.chosen.id for one in told] == ours.token_ids


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.usefixtures("eager")
def test_a_failing_batch_with_guesses_in_it_costs_only_the_culprit(seed: int) -> None:
    rng = random.Random(seed)
    jobs = [make_job(f"job{at}", "x" * (at + 3), max_tokens=20) for at in range(3)]
    plain = run_all(make_bench(), jobs, random.Random(seed))

    def fails_for(piece: Slice) -> bool:
        return len(piece.tokens) > 1 and piece.start > 8 and rng.random() < 0.3

    bench = make_bench(seed, fails_for=fails_for)
    for job in jobs:
        bench.add(job)
    bench.run()
    for job in jobs:
        if bench.outcome(job.id).events[-1].__class__.__name__ == "Done":
            assert bench.outcome(job.id).text == plain[job.id].text


@pytest.mark.usefixtures("eager")
def test_a_cancelled_job_leaves_the_guesses_of_others_alone() -> None:
    bench = make_bench(3)
    for number in range(3):
        bench.add(make_job(f"job{number}", "y" * (number + 4), max_tokens=30))
    bench.step(4)
    bench.engine.cancel("job1")
    bench.run()
    for number in (0, 2):
        alone = make_bench().answer(make_job("alone", "y" * (number + 4), max_tokens=30))
        assert bench.outcome(f"job{number}").text == alone.text
