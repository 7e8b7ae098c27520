"""Inputs of many jobs share a batch, in turn, and each job gets its own vectors back."""

import base64
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from inference.backend.fake import FakeEmbedder, FakeModel
from inference.embedding.batcher import Batcher
from inference.embedding.thread import EmbeddingThread
from inference.embedding.vectors import UNSCALED
from inference.embedding.work import GROUP, EmbeddingWork, Room, Share, take_batch
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason, Started, Vectors
from inference.protocol.jobs import EmbeddingJob
from tests.inference.engine.fakes import FAR_DEADLINE, make_job

Inputs = Sequence[Sequence[int]]


def make_embedding_job(
    job_id: str = "job", inputs: Inputs = ((3, 4),), **fields: Any
) -> EmbeddingJob:
    return EmbeddingJob(
        id=job_id,
        deployment="d",
        owner="o",
        gateway="g",
        inputs=tuple(map(tuple, inputs)),
        deadline=fields.pop("deadline", FAR_DEADLINE),
        **fields,
    )


def make_room(num_inputs: int) -> Room:
    return Room(list(range(num_inputs)), 2**62, can_split=False)


class Bench:
    """A batcher over the fake embedder, stepped by hand."""

    def __init__(self, fails_for: Callable[[Sequence[int]], bool] = lambda _: False) -> None:
        self.now = 1000.0
        self.events: list[tuple[str, Event]] = []
        self.embedder = FakeEmbedder(FakeModel(512), fails_for=fails_for)
        self.batcher = Batcher(self.embedder, self.events.extend, lambda: self.now)

    def run(self) -> None:
        while self.batcher.has_work:
            self.batcher.step()

    def of(self, job_id: str) -> list[Event]:
        return [event for other, event in self.events if other == job_id]

    def vectors(self, job_id: str) -> list[np.ndarray[Any, Any]]:
        told = [event for event in self.of(job_id) if isinstance(event, Vectors)]
        assert [event.first_index for event in told] == list(
            np.cumsum([0, *(len(event.vectors) for event in told)])[:-1]
        )
        return [
            np.frombuffer(base64.b64decode(vector), "<f4")
            for event in told
            for vector in event.vectors
        ]


def test_a_job_gets_its_vectors_and_ends() -> None:
    bench = Bench()
    bench.batcher.add(make_embedding_job(inputs=[(3, 4), (5,)]))
    bench.run()
    assert isinstance(bench.of("job")[0], Started)
    done = bench.of("job")[-1]
    assert isinstance(done, Done)
    assert (done.num_prompt_tokens, done.num_completion_tokens) == (3, 0)
    vectors = bench.vectors("job")
    assert len(vectors) == 2
    assert all(np.linalg.norm(vector) == pytest.approx(1.0) for vector in vectors)


def test_normalising_is_a_choice() -> None:
    bench = Bench()
    bench.batcher.add(make_embedding_job("raw", norm=UNSCALED))
    bench.batcher.add(make_embedding_job("unit"))
    bench.run()
    raw, unit = bench.vectors("raw")[0], bench.vectors("unit")[0]
    assert np.linalg.norm(raw) != pytest.approx(1.0)
    assert unit == pytest.approx(raw / np.linalg.norm(raw))


def test_inputs_of_several_jobs_share_a_batch() -> None:
    bench = Bench()
    for index in range(4):
        bench.batcher.add(make_embedding_job(f"job{index}", [(index + 2,)] * 3))
    bench.run()
    assert bench.embedder.batches == [(1,) * 12]


def test_a_small_job_does_not_wait_for_a_large_one() -> None:
    bench = Bench()
    bench.batcher.add(make_embedding_job("large", [(3, 4, 5)] * 200))
    bench.batcher.step()
    bench.batcher.add(make_embedding_job("small", [(6,)]))
    bench.batcher.step()
    assert isinstance(bench.of("small")[-1], Done)
    assert not isinstance(bench.of("large")[-1], Done)
    bench.run()
    assert len(bench.vectors("large")) == 200


def test_vectors_do_not_depend_on_neighbours() -> None:
    alone = Bench()
    alone.batcher.add(make_embedding_job(inputs=[(3, 4)]))
    alone.run()
    crowd = Bench()
    crowd.batcher.add(make_embedding_job("other", [(9, 9, 9)] * 20))
    crowd.batcher.add(make_embedding_job(inputs=[(3, 4)]))
    crowd.run()
    assert (alone.vectors("job")[0] == crowd.vectors("job")[0]).all()


def test_a_failing_batch_costs_only_its_culprit() -> None:
    bench = Bench(fails_for=lambda tokens: 13 in tokens)
    bench.batcher.add(make_embedding_job("good", [(3,)] * 3))
    bench.batcher.add(make_embedding_job("bad", [(3,), (13,), (4,)]))
    bench.batcher.add(make_embedding_job("fine", [(5,)]))
    bench.run()
    assert isinstance(bench.of("bad")[-1], Failed)
    assert len(bench.vectors("good")) == 3
    assert len(bench.vectors("fine")) == 1


def test_cancel_and_deadline_end_a_job() -> None:
    bench = Bench()
    bench.batcher.add(make_embedding_job("cancelled", [(3,)] * 40))
    bench.batcher.add(make_embedding_job("late", [(3,)] * 40, deadline=1001.0))
    bench.batcher.step()
    bench.batcher.cancel("cancelled")
    bench.batcher.cancel("unknown")
    bench.now = 1002.0
    bench.run()
    cancelled, late = bench.of("cancelled")[-1], bench.of("late")[-1]
    assert isinstance(cancelled, Done) and cancelled.finish_reason is FinishReason.CANCELLED
    assert isinstance(late, Failed) and late.code == ErrorCode.DEADLINE_EXCEEDED


def take_all(line: deque[EmbeddingWork], room: Room, max_tokens: int) -> list[list[Share]]:
    """Take batch after batch, each computed before the next."""
    batches = []
    while line:
        shares = take_batch(line, room, max_tokens)
        assert shares
        batches.append(shares)
        for share in shares:
            if share.part.is_last:
                room.end(share.part.seq_id)
    return batches


@pytest.mark.parametrize("can_split", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_random_jobs_are_taken_whole_and_in_order(seed: int, can_split: bool) -> None:
    draw = random.Random(seed)
    room = Room(list(range(16)), 200 if can_split else 2**62, can_split)
    works = []
    for index in range(40):
        longest = draw.choice([20, 60, 150])
        sizes = [draw.randint(1, longest) for _ in range(draw.randint(1, 40))]
        works.append(EmbeddingWork(make_embedding_job(f"job{index}", [(3,) * n for n in sizes])))
    taken: dict[str, list[tuple[int, int, int]]] = {work.job.id: [] for work in works}
    for shares in take_all(deque(works), room, 100):
        num_tokens = sum(len(share.part.tokens) for share in shares)
        assert num_tokens <= 100 or (len(shares) == 1 and not can_split)
        assert len({share.part.seq_id for share in shares}) == len(shares) <= 16
        for share in shares:
            part = share.part
            taken[share.work.job.id].append((share.input, part.start, len(part.tokens)))
    for work in works:
        expected = [
            (i, at) for i, tokens in enumerate(work.job.inputs) for at in range(len(tokens))
        ]
        got = [(i, s + k) for i, s, count in taken[work.job.id] for k in range(count)]
        assert got == expected
    assert room.num_held == 0


def test_an_input_without_place_is_next_and_lets_those_that_began_go_on() -> None:
    room = Room(list(range(8)), 150, can_split=True)
    long, longer, short = (
        EmbeddingWork(make_embedding_job(name, [(3,) * size]))
        for name, size in (("long", 120), ("longer", 140), ("short", 5))
    )
    batches = take_all(deque([long, longer, short]), room, 50)
    order = [[share.work.job.id for share in shares] for shares in batches]
    assert order == [["long"]] * 3 + [["longer"], ["short", "longer"], ["longer"]]


def test_each_job_gets_a_group_before_any_gets_a_second() -> None:
    line = deque(EmbeddingWork(make_embedding_job(name, [(3,)] * 50)) for name in "abc")
    shares = take_batch(line, make_room(4 * GROUP), 1000)
    assert [share.work.job.id for share in shares] == ["a"] * GROUP + ["b"] * GROUP + [
        "c"
    ] * GROUP + ["a"] * GROUP
    assert line[0].job.id == "b"


@pytest.mark.parametrize(
    ("inputs", "code", "message"),
    [
        ([(3,), (3,) * 513], ErrorCode.CONTEXT_LENGTH_EXCEEDED, "Input 1 has 513 tokens.*512"),
        ([(3,), ()], ErrorCode.INVALID_PROMPT, "Input 1"),
        ([(3, 9999)], ErrorCode.INVALID_TOKEN_ID, "Input 0: Token id 9999 at position 1"),
        ([], ErrorCode.INVALID_PROMPT, "nothing"),
    ],
)
def test_submit_names_the_input_at_fault(inputs: Inputs, code: ErrorCode, message: str) -> None:
    thread = EmbeddingThread(FakeEmbedder(FakeModel(512)), lambda _: None)
    with pytest.raises(EngineError, match=message) as caught:
        thread.submit(make_embedding_job(inputs=inputs))
    assert caught.value.code is code


def test_generation_is_of_the_wrong_kind() -> None:
    thread = EmbeddingThread(FakeEmbedder(FakeModel(512)), lambda _: None)
    with pytest.raises(EngineError) as caught:
        thread.submit(make_job())
    assert caught.value.code is ErrorCode.WRONG_MODEL_KIND
