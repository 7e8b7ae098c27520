"""Inputs of many jobs share a batch, in turn, and each job gets its own vectors back."""

import random
from collections import deque
from collections.abc import Sequence

import numpy as np
import pytest

from inference.backend.base import InputPart
from inference.backend.fake import FakeEmbedder, FakeModel
from inference.embedding.thread import EmbeddingThread
from inference.embedding.vectors import UNSCALED
from inference.embedding.work import GROUP, EmbeddingWork, Room, Share, take_batch
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Done, Failed, FinishReason, Started, Vectors
from tests.inference.embedding.bench import Bench, Inputs, make_embedding_job, read_rows
from tests.inference.engine.fakes import make_job


def make_room(num_inputs: int) -> Room:
    return Room(list(range(num_inputs)), 2**62, can_split=False)


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
    assert bench.batcher.stats().num_running == 2
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
    failed = bench.of("bad")[-1]
    assert isinstance(failed, Failed) and "input 1" in failed.message
    assert len(bench.vectors("good")) == 3
    assert len(bench.vectors("fine")) == 1
    # One batch, then one input at a time; nothing more of the job that has failed.
    assert bench.embedder.batches[1:] == [(1,)] * 6


def test_numbers_without_words_in_json_fail_their_job_alone() -> None:
    bench = Bench()
    draw = bench.embedder.embed

    def spoil(parts: Sequence[InputPart]) -> list[np.ndarray]:
        rows = draw(parts)
        return [
            row * np.float32(np.nan) if 13 in part.tokens else row
            for part, row in zip(parts, rows, strict=True)
        ]

    bench.embedder.embed = spoil  # type: ignore[method-assign]
    bench.batcher.add(make_embedding_job("bad", [(3,), (13,)]))
    bench.batcher.add(make_embedding_job("good", [(3,)]))
    bench.run()
    assert isinstance(bench.of("bad")[-1], Failed)
    assert len(bench.vectors("good")) == 1


def test_vectors_are_shortened_before_they_are_scaled() -> None:
    bench = Bench()
    bench.batcher.add(make_embedding_job("whole", norm=UNSCALED))
    bench.batcher.add(make_embedding_job("short", num_dimensions=3))
    bench.run()
    whole = bench.vectors("whole")[0]
    told = next(event for event in bench.of("short") if isinstance(event, Vectors))
    assert told.dimensions == 3
    short = read_rows(told.vectors[0], 3)[0]
    assert short == pytest.approx(whole[:3] / np.linalg.norm(whole[:3]))


def test_a_long_input_is_read_in_parts_of_the_asked_size() -> None:
    whole, parts = Bench(can_split=True), Bench(can_split=True)
    for bench, size in ((whole, None), (parts, 50)):
        bench.batcher.add(make_embedding_job("long", [tuple(range(2, 202)), (5, 6)]))
        bench.batcher.add(make_embedding_job("short", [(7,)]))
        bench.run(size)
    assert max(map(sum, parts.embedder.batches)) == 50
    for job in ("long", "short"):
        assert np.array_equal(whole.vectors(job), parts.vectors(job))


def test_without_pooling_each_token_has_a_row_told_in_pieces() -> None:
    bench = Bench(20_000, pooling="none", can_split=True)
    tokens = tuple(2 + i % 256 for i in range(9_000))
    bench.batcher.add(make_embedding_job(inputs=[(3, 4), tokens]))
    bench.run()
    told = [event for event in bench.of("job") if isinstance(event, Vectors)]
    rows = {0: 0, 1: 0}
    for event in told:
        assert len(event.vectors) == 1 and len(event.vectors[0]) <= 300_000
        rows[event.first_index] += len(read_rows(event.vectors[0], 8))
    assert rows == {0: 2, 1: 9_000}


def test_a_cancelled_or_late_job_gives_its_place_back() -> None:
    bench = Bench(can_split=True)
    bench.batcher.add(make_embedding_job("cancelled", [(3,) * 300]))
    bench.batcher.add(make_embedding_job("late", [(3,) * 300], deadline=1001.0))
    bench.step(100)
    bench.batcher.cancel("cancelled")
    bench.step(100)
    bench.now = 1002.0
    bench.batcher.add(make_embedding_job("next", [(3,) * 512]))
    bench.run(100)
    assert isinstance(bench.of("late")[-1], Failed)
    assert isinstance(bench.of("next")[-1], Done)


def test_a_bug_keeps_no_places_of_inputs() -> None:
    bench = Bench(can_split=True, fails_for=lambda tokens: 1 // (13 not in tokens) < 0)
    for _ in range(bench.embedder.max_batch_inputs):
        bench.batcher.add(make_embedding_job("bad", [(13,), (3,) * 300]))
        with pytest.raises(ZeroDivisionError):
            bench.batcher.step(100)
        bench.batcher.fail_all(ErrorCode.ENGINE_FAILED, "The engine failed.")
        bench.batcher.check_integrity()
    bench.batcher.add(make_embedding_job("next", [(3,) * 512]))
    bench.run()
    assert isinstance(bench.of("next")[-1], Done)


@pytest.mark.parametrize("can_split", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_random_jobs_faults_and_cancels_leave_every_other_job_right(
    seed: int, can_split: bool
) -> None:
    draw = random.Random(seed)
    bench = Bench(can_split=can_split, fails_for=lambda tokens: 13 in tokens)
    spared: dict[str, list[tuple[int, ...]]] = {}
    for index in range(30):
        name, is_bad = f"job{index}", draw.random() < 0.2
        inputs = [
            tuple(draw.choices(range(20, 90), k=draw.randint(1, 400)))
            for _ in range(draw.randint(1, 12))
        ]
        if is_bad:
            inputs[draw.randrange(len(inputs))] = (13,)
        bench.batcher.add(make_embedding_job(name, inputs, norm=UNSCALED))
        spared[name] = inputs
        if draw.random() < 0.2:
            victim = f"job{draw.randint(0, index)}"
            bench.batcher.cancel(victim)
        for _ in range(draw.randint(0, 3)):
            bench.step(draw.choice([None, 16, 100]) if can_split else None)
    bench.run()
    for name, inputs in spared.items():
        end = bench.of(name)[-1]
        assert isinstance(end, Done | Failed)
        assert isinstance(end, Failed) == any(t == (13,) for t in inputs) or (
            isinstance(end, Done) and end.finish_reason is FinishReason.CANCELLED
        )
        if isinstance(end, Done) and end.finish_reason is FinishReason.EOS:
            alone = Bench(can_split=can_split)
            alone.batcher.add(make_embedding_job("job", inputs, norm=UNSCALED))
            alone.run()
            assert np.array_equal(alone.vectors("job"), bench.vectors(name))


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
