"""Steps are planned under one budget, and no sequence waits for ever."""

import random

from inference.backend.fake import FakeBackend, FakeModel
from inference.engine.admission import admit
from inference.engine.scheduler import Scheduler
from inference.engine.sequence import Sequence
from inference.protocol.replicas import RuntimeProfile
from tests.inference.engine.fakes import make_job


def make_sequence(slot: int, num_prompt: int, *, decoding: bool = False) -> Sequence:
    sequence = admit(make_job(prompt="x" * num_prompt), FakeBackend(FakeModel()))
    sequence.slot = slot
    if decoding:
        sequence.num_computed = num_prompt
        sequence.append(5, None, b"a")
    return sequence


def plan_sizes(scheduler: Scheduler, sequences: list[Sequence]) -> dict[int, int]:
    plan = scheduler.schedule(sequences)
    return {piece.sequence.slot: piece.num_tokens for piece in plan.pieces}


PROFILE = RuntimeProfile(num_slots=4, step_token_budget=100, prefill_chunk=20)


def test_a_prompt_alone_gets_the_whole_budget() -> None:
    assert plan_sizes(Scheduler(PROFILE), [make_sequence(0, 150)]) == {0: 100}


def test_a_prompt_beside_decoding_sequences_gets_a_slice() -> None:
    sequences = [make_sequence(0, 150), make_sequence(1, 5, decoding=True)]
    assert plan_sizes(Scheduler(PROFILE), sequences) == {0: 20, 1: 1}


def test_prompts_share_the_budget_in_order_of_arrival() -> None:
    sequences = [make_sequence(3, 60), make_sequence(0, 60), make_sequence(1, 60)]
    assert plan_sizes(Scheduler(PROFILE), sequences) == {3: 60, 0: 40}


def test_pieces_are_ordered_by_slot() -> None:
    sequences = [make_sequence(3, 5), make_sequence(1, 5, decoding=True), make_sequence(0, 5)]
    plan = Scheduler(PROFILE).schedule(sequences)
    assert [piece.sequence.slot for piece in plan.pieces] == [0, 1, 3]


def test_more_slots_than_budget_still_let_every_sequence_decode() -> None:
    profile = RuntimeProfile(num_slots=8, step_token_budget=4)
    sequences = [make_sequence(slot, 3, decoding=True) for slot in range(8)]
    assert len(plan_sizes(Scheduler(profile), sequences)) == 8


def test_random_plans_keep_the_invariants_and_end() -> None:
    draw = random.Random(7)
    for _ in range(100):
        budget, chunk = draw.randint(4, 40), draw.randint(1, 40)
        scheduler = Scheduler(
            RuntimeProfile(num_slots=4, step_token_budget=budget, prefill_chunk=chunk)
        )
        running = [
            make_sequence(slot, draw.randint(1, 60), decoding=draw.random() < 0.4)
            for slot in draw.sample(range(4), draw.randint(1, 4))
        ]
        run_to_end(scheduler, running, budget)


def run_to_end(scheduler: Scheduler, running: list[Sequence], budget: int) -> None:
    for _ in range(400):
        plan = scheduler.schedule(running)
        if not plan.pieces:
            assert not running
            return
        assert sum(piece.num_tokens for piece in plan.pieces) <= budget
        assert sum(sequence.is_decoding for sequence in running) == plan.num_decode
        for piece in plan.pieces:
            assert 0 < piece.num_tokens <= piece.sequence.num_pending
            piece.sequence.num_computed += piece.num_tokens
            if not piece.sequence.num_pending:
                piece.sequence.append(7, None, b"a")
        running = [sequence for sequence in running if sequence.num_generated < 5]
    raise AssertionError("some sequence starved")
