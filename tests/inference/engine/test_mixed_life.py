"""All that an engine can do at once, at random: whatever meets, every answer is as if alone."""

import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
import pytest

from inference.backend import grouped, prefix_groups
from inference.backend.base import DecodeError, Rows, Slice
from inference.backend.fake import FakeBackend, FakeModel
from inference.backend.grouped import GroupedBackend
from inference.backend.state_layout import StateLayout
from inference.engine.engine import Engine
from inference.engine.speculation import Speculator
from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Failed, FinishReason, PromptLogprobs
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import AdapterFacts, RuntimeProfile
from inference.protocol.sampling import SamplingParams
from inference.speculation.controller import Controller
from tests.inference.engine.fakes import FAR_DEADLINE, Bench, Outcome, make_job
from tests.inference.engine.test_speculation import Oracle, guess_all

KINDS = ("split", "unified", "grouped", "window", "recurrent", "deterministic")
TEXTS = ("shared beginning of a prompt, " * 4, "another start " * 8, "z" * 100)
ADAPTERS = (AdapterFacts(name="a", scale=0.0), AdapterFacts(name="b", scale=1.0))
SMALLER = {"MIN_LENGTH": 12, "MIN_MEMBERS": 3, "_CALLS_BETWEEN": 4, "_CALLS_AT_REST": 24}


class FlakyBackend(FakeBackend):
    """Calls fail at random, perhaps with a part of them computed; so do copies of states."""

    draw: random.Random | None = None

    def _is_mishap(self) -> bool:
        return self.draw is not None and self.draw.random() < 0.02

    def decode(self, slices: Sequence[Slice]) -> Rows:
        if self.draw and self._is_mishap():
            if count := self.draw.randint(0, len(slices)):
                super().decode(slices[:count])
            raise DecodeError(self.draw.choice([-1, -2, -3, 2]))
        return super().decode(slices)

    def restore_state(self, seq_id: int, state: memoryview, num_tokens: int) -> int:
        if self._is_mishap():
            return self.keep_prefix(seq_id, 0)
        return super().restore_state(seq_id, state, num_tokens)

    def share_prefix(self, source: int, target: int, num_tokens: int) -> None:
        assert self.sequences[source][:num_tokens] == self.sequences[target][:num_tokens]


class PlainState:
    """What a saved state is to two fakes: both write it alike."""

    layout = StateLayout(1, False)

    def __init__(self, state: memoryview) -> None:
        self._state = state

    def write(self, _layout: StateLayout) -> memoryview:
        return self._state


class MixedBench(Bench):
    """An engine of one kind, over a backend that may be flaky."""

    def __init__(self, kind: str, profile: RuntimeProfile, draw: random.Random | None) -> None:
        self.now, self.profile = 1000.0, profile
        self.events, self.num_sink_calls = [], 0
        windows = {"window": 24, "recurrent": 0}
        self.fakes = [self._fake(profile.kv_cells if kind == "unified" else 0, windows.get(kind))]
        backend: Any = self.fakes[0]
        if kind == "grouped":
            num_cells = profile.context_length + 40
            self.fakes.append(self._fake(num_cells, None))
            backend = GroupedBackend(
                cast("Any", self.fakes[0]), cast("Any", self.fakes[1]), num_cells
            )
        self.backend = backend
        self.engine = Engine(backend, profile, self._collect, clock=lambda: self.now)
        if profile.speculation:
            oracle = Oracle(self.fakes[0].next_token, profile.num_slots)
            self.engine._speculator = Speculator(oracle, profile)
        for fake in self.fakes:
            fake.draw = draw

    def step(self, count: int = 1) -> None:
        """Run steps; compare what the backend has with what the cache believes."""
        super().step(count)
        for cells in self.engine._cache._cells:
            held = [fake.sequences.get(cells.slot, []) for fake in self.fakes]
            assert sum(map(bool, held)) <= 1, "a sequence is in two contexts"
            if not cells.is_leased and cells.num_computed and any(held):
                assert cells.tokens in held

    def _fake(self, num_cells: int, window: int | None) -> FlakyBackend:
        model: Any = FakeModel(self.profile.context_length, adapters=ADAPTERS)
        model.num_vocab = model.facts().num_vocab
        can_shift = window is None
        return FlakyBackend(model, num_cells=num_cells, state_window=window, can_shift=can_shift)


def make_profile(draw: random.Random, kind: str) -> RuntimeProfile:
    length = 72 if kind == "grouped" else draw.choice([20, 40, 72])
    num_slots = draw.randint(4, 7) if kind == "grouped" else draw.randint(1, 6)
    can_guess = kind in ("split", "unified", "grouped")
    return RuntimeProfile(
        context_length=length,
        num_slots=num_slots,
        step_token_budget=max(num_slots, draw.choice([8, 20, 60])),
        prefill_chunk=draw.choice([1, 3, 8, 50]),
        num_draft_tokens=draw.choice([1, 8]),
        speculation="ngram" if can_guess and draw.random() < 0.5 else "",
        prefix_host_bytes=draw.choice([0, 300, 1 << 20]),
        is_context_shifting=draw.random() < 0.4,
        is_deterministic=kind == "deterministic",
        is_kv_unified=kind == "unified",
        kv_cells=draw.choice([length, length + 5, 2 * length]) if kind == "unified" else 0,
    )


def make_mixed_job(draw: random.Random, job_id: str, length: int) -> GenerationJob:
    """Make a job of any wish, often one whose prompt begins as others do."""
    num_prompt = draw.choice([1, length - 1, draw.randint(1, length - 1), draw.randint(1, 9)])
    text = draw.choice(TEXTS)[: draw.choice([num_prompt, num_prompt // 2])]
    chances: dict[str, Callable[[], Any]] = {
        "num_prompt_logprobs": lambda: draw.choice([0, 2]),
        "stop": lambda: (draw.choice(["e", "th", "ao"]),),
        "loras": lambda: draw.choice([(), ((0, 1.0),), ((1, 0.5), (0, 2.0))]),
        "num_draft_tokens": lambda: draw.choice([0, 2]),
        "cache_prompt": lambda: False,
        "deadline": lambda: 1000.0 + draw.randint(0, 40),
    }
    return make_job(
        job_id,
        text + draw.choice("uvwxy") * (num_prompt - len(text)),
        salt=draw.choice("aab"),
        max_tokens=draw.choice([None, 0, 1, 5, 2 * length]),
        stream=draw.random() < 0.7,
        priority=draw.choice([0, 0, 1, -1]),
        num_keep=draw.choice([0, -1, 3, 10**6]),
        num_discard=draw.choice([0, 1, 10**5]),
        sampling=SamplingParams(temperature=0),
        **{name: wish() for name, wish in chances.items() if draw.random() < 0.15},
    )


def answer_alone(kind: str, profile: RuntimeProfile, job: GenerationJob) -> Outcome:
    """Give the answer that nothing ever disturbed, of a job as it came first."""
    calm = msgspec.structs.replace(profile, num_slots=1, speculation="", step_token_budget=256)
    plain = "split" if kind == "grouped" else kind
    first = msgspec.structs.replace(job, deadline=FAR_DEADLINE, emitted_tokens=(), attempt=1)
    return MixedBench(plain, calm, None).answer(first)


def check_answer(outcome: Outcome, alone: Outcome, job: GenerationJob) -> None:
    """Compare what was told of a job with what is told when nothing ever happens."""
    end = outcome.events[-1]
    told = [*job.emitted_tokens, *outcome.token_ids]
    assert told == alone.token_ids[: len(told)]
    if isinstance(end, Failed):
        assert end.code in (ErrorCode.ENGINE_FAILED, ErrorCode.DEADLINE_EXCEEDED)
        return
    assert isinstance(end, Done) and end.num_completion_tokens == len(told)
    assert 0 <= end.num_cached_tokens <= end.num_prompt_tokens
    assert end.num_accepted_tokens <= end.num_drafted_tokens
    assert end.timings.num_prompt_computed >= 0
    if end.finish_reason is FinishReason.CANCELLED or job.deadline < FAR_DEADLINE:
        return
    assert told == alone.token_ids and end.finish_reason is alone.done.finish_reason
    if not job.emitted_tokens:
        assert outcome.text == alone.text and end.truncated == alone.done.truncated
        judged = [
            one
            for event in outcome.events
            if isinstance(event, PromptLogprobs)
            for one in event.logprobs
        ]
        assert len(judged) == (len(job.prompt_tokens) if job.num_prompt_logprobs is not None else 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 60))]
)
def test_whatever_meets_every_answer_is_as_if_alone(
    kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Controller, "choose", guess_all)
    monkeypatch.setattr(grouped, "read_state", lambda state: PlainState(state) if state else None)
    for name, value in SMALLER.items():
        for module in (grouped, prefix_groups):
            monkeypatch.setattr(module, name, value, raising=False)
    live(random.Random(f"{kind} {seed}"), kind, is_flaky=seed % 2 == 1)


def live(draw: random.Random, kind: str, *, is_flaky: bool) -> None:
    """Have jobs come together and one by one, go on from elsewhere, and be cancelled."""
    profile = make_profile(draw, kind)
    bench = MixedBench(kind, profile, draw if is_flaky else None)
    jobs: dict[str, GenerationJob] = {}
    alone: dict[str, Outcome] = {}
    for step in range(25):
        count = draw.choice([0, 0, 1, 3])
        job = make_mixed_job(draw, str(step), profile.sequence_cells)
        for at in range(count):
            one = msgspec.structs.replace(job, id=f"{step}-{at}")
            alone[one.id] = alone.get(f"{step}-0") or answer_alone(kind, profile, one)
            if draw.random() < 0.15:
                told = alone[one.id].token_ids[: draw.randint(0, 30)]
                one = msgspec.structs.replace(one, emitted_tokens=tuple(told), attempt=2)
            jobs[one.id] = one
            bench.add(one)
        if jobs and draw.random() < 0.1:
            bench.engine.cancel(draw.choice(list(jobs)))
        bench.now += draw.randint(0, 1)
        bench.step()
    bench.run()
    assert not any(fake.num_open_samplers for fake in bench.fakes)
    for job_id, job in jobs.items():
        check_answer(bench.outcome(job_id), alone[job_id], job)
