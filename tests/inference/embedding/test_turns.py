"""Chat and embeddings of one model in turns: neither holds the other back for long."""

from collections.abc import Sequence

import pytest

from inference.backend.base import InputPart, Slice
from inference.backend.fake import FakeBackend, FakeEmbedder, FakeModel
from inference.embedding.batcher import Batcher
from inference.embedding.turns import Turns
from inference.engine.admission import admit
from inference.engine.engine import Engine
from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason, Tokens
from inference.protocol.replicas import RuntimeProfile
from tests.inference.embedding.bench import Numbers, make_embedding_job
from tests.inference.engine.fakes import make_job

SLICE_TOKENS = 32
MILLISECOND = 0.001


class TimedBackend(FakeBackend):
    """Takes a millisecond per sequence and one per prompt token, on a clock of the test's own."""

    bench: "Bench"

    def decode(self, slices: Sequence[Slice]) -> Numbers:
        self.bench.note("chat", sum(len(piece.tokens) for piece in slices) * MILLISECOND)
        return super().decode(slices)


class TimedEmbedder(FakeEmbedder):
    """Takes a millisecond per token."""

    bench: "Bench"

    def embed(self, parts: Sequence[InputPart]) -> list[Numbers]:
        self.bench.note("embed", sum(len(part.tokens) for part in parts) * MILLISECOND)
        return super().embed(parts)


class Bench:
    """Both halves over fakes, stepped by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.steps: list[tuple[str, float]] = []
        self.events: list[tuple[str, Event]] = []
        model = FakeModel(4096)
        profile = RuntimeProfile(num_slots=4, context_length=4096, prefill_chunk=SLICE_TOKENS)
        self.backend, self.embedder = TimedBackend(model), TimedEmbedder(model, can_split=True)
        self.backend.bench = self.embedder.bench = self
        self.engine = Engine(self.backend, profile, self.events.extend)
        self.batcher = Batcher(self.embedder, self.events.extend)
        self.turns = Turns(self.engine, self.batcher, SLICE_TOKENS, lambda: self.seconds)

    def note(self, who: str, seconds: float) -> None:
        self.seconds += seconds
        self.steps.append((who, seconds))

    def run(self, count: int = 100_000) -> None:
        while self.turns.has_work and count:
            self.turns.step()
            count -= 1

    def ended(self, job_id: str) -> Event:
        return [event for other, event in self.events if other == job_id][-1]


def test_beside_chat_an_embedding_takes_one_slice_and_waits_as_long_as_it_took() -> None:
    bench = Bench()
    for name in "abc":
        bench.turns.add(admit(make_job(name, max_tokens=400), bench.backend))
    bench.turns.add(make_embedding_job("e", [(3,) * 300] * 3))
    bench.run()
    kinds = [who for who, _ in bench.steps]
    first, last = kinds.index("embed"), len(kinds) - 1 - kinds[::-1].index("embed")
    slices = [seconds for who, seconds in bench.steps[: last + 1] if who == "embed"]
    assert max(slices) <= SLICE_TOKENS * MILLISECOND + 1e-9
    assert "embedembed" not in "".join(kinds[: last + 1])
    # Between two slices chat has the time of one, and not more than a step beyond.
    gaps, gap = [], 0.0
    for who, seconds in bench.steps[first + 1 : last + 1]:
        if who == "embed":
            gaps.append(gap)
            gap = 0.0
        else:
            gap += seconds
    longest_step = max(seconds for who, seconds in bench.steps if who == "chat")
    assert all(slices[0] - 1e-9 <= one <= max(slices) + longest_step + 1e-9 for one in gaps)


def test_both_end_however_long_the_other_goes_on() -> None:
    bench = Bench()
    bench.turns.add(admit(make_job("chat", max_tokens=300), bench.backend))
    bench.turns.add(make_embedding_job("e", [(3,) * 200] * 20))
    for index in range(400):
        bench.turns.add(make_embedding_job(f"more{index}", [(3,) * 64]))
        bench.turns.step()
    assert sum(isinstance(event, Tokens) for job, event in bench.events if job == "chat") > 150
    bench.run()
    assert isinstance(bench.ended("chat"), Done)
    assert isinstance(bench.ended("e"), Done)
    assert isinstance(bench.ended("more399"), Done)


def test_without_chat_batches_are_full() -> None:
    bench = Bench()
    bench.turns.add(make_embedding_job("e", [(3,) * 1024]))
    bench.run()
    assert bench.embedder.batches == [(512,), (512,)]


def test_a_late_chat_waits_for_one_full_batch_at_most() -> None:
    bench = Bench()
    bench.turns.add(make_embedding_job("e", [(3,) * 4000]))
    bench.turns.step()
    bench.turns.add(admit(make_job("chat"), bench.backend))
    bench.turns.step()
    bench.turns.step()
    assert [who for who, _ in bench.steps] == ["embed", "embed", "chat"]
    assert bench.steps[1][1] == pytest.approx(SLICE_TOKENS * MILLISECOND)


def test_cancel_reaches_either_half() -> None:
    bench = Bench()
    bench.turns.add(admit(make_job("chat", max_tokens=900), bench.backend))
    bench.turns.add(make_embedding_job("e", [(3,) * 4000]))
    bench.run(5)
    bench.turns.cancel("e")
    bench.run(1)
    end = bench.ended("e")
    assert isinstance(end, Done) and end.finish_reason is FinishReason.CANCELLED
    bench.turns.cancel("chat")
    bench.run()
    assert not bench.turns.has_work and not bench.embedder.begun


def test_a_bug_in_one_half_costs_no_job_of_the_other() -> None:
    bench = Bench()
    bench.turns.add(admit(make_job("chat", max_tokens=20), bench.backend))
    bench.turns.add(make_embedding_job("e"))

    def explode(_: object) -> list[Numbers]:
        raise RuntimeError("a bug")

    bench.embedder.embed = explode  # type: ignore[method-assign,assignment]
    bench.run()
    failed = bench.ended("e")
    assert isinstance(failed, Failed) and failed.is_retryable
    assert failed.code == ErrorCode.ENGINE_FAILED
    assert isinstance(bench.ended("chat"), Done)
    with pytest.raises(RuntimeError):
        for index in range(20):
            bench.turns.add(make_embedding_job(f"e{index}"))
            bench.run()
