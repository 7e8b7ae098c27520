"""Steps are planned under one budget, nobody is held back for long, and nobody for ever."""

import random
from typing import Any

import msgspec
import pytest

from inference.backend.fake import FakeBackend, FakeModel
from inference.engine.admission import admit
from inference.engine.plan import Piece, StepPlan
from inference.engine.scheduler import Scheduler
from inference.engine.sequence import Sequence
from inference.protocol.replicas import RuntimeProfile
from tests.inference.engine.fakes import make_job

PROFILE = RuntimeProfile(num_slots=4, step_token_budget=100, prefill_chunk=20)


def make_sequence(slot: int, num_prompt: int, *, decoding: bool = False, **fields: Any) -> Sequence:
    sequence = admit(make_job(prompt="x" * num_prompt, **fields), FakeBackend(FakeModel()))
    sequence.slot = slot
    if decoding:
        sequence.num_computed = num_prompt
        sequence.append(5, None, b"a")
    return sequence


def plan_sizes(scheduler: Scheduler, sequences: list[Sequence]) -> dict[int, int]:
    plan = scheduler.schedule(sequences)
    return {piece.sequence.slot: piece.num_tokens for piece in plan.pieces}


def carry_out(plan: StepPlan) -> None:
    """Do to the sequences what a step does."""
    for piece in plan.pieces:
        piece.sequence.num_computed += piece.num_tokens
        if not piece.sequence.num_pending:
            piece.sequence.append(7, None, b"a")


def test_a_prompt_alone_has_as_few_slices_as_can_be_and_equal_ones() -> None:
    scheduler, sequence = Scheduler(PROFILE), make_sequence(0, 250)
    sizes = []
    while not sequence.is_decoding:
        sizes += plan_sizes(scheduler, [sequence]).values()
        carry_out(scheduler.schedule([sequence]))
    assert sizes == [84, 83, 83]
    assert plan_sizes(scheduler, [make_sequence(0, 100)]) == {0: 100}


def test_a_prompt_beside_decoding_sequences_gets_a_slice() -> None:
    sequences = [make_sequence(0, 150), make_sequence(1, 5, decoding=True)]
    assert plan_sizes(Scheduler(PROFILE), sequences) == {0: 20, 1: 1}


def test_half_the_room_is_for_who_came_first_and_the_rest_for_the_shortest() -> None:
    sequences = [make_sequence(3, 200), make_sequence(0, 60), make_sequence(1, 30)]
    assert plan_sizes(Scheduler(PROFILE), sequences) == {3: 50, 1: 30, 0: 20}


def test_what_the_others_do_not_need_is_for_who_came_first() -> None:
    sequences = [make_sequence(3, 200), make_sequence(0, 8), make_sequence(1, 7)]
    assert plan_sizes(Scheduler(PROFILE), sequences) == {3: 85, 1: 7, 0: 8}


def test_what_who_came_first_does_not_need_is_for_the_others() -> None:
    sequences = [make_sequence(3, 10), make_sequence(0, 100)]
    assert plan_sizes(Scheduler(PROFILE), sequences) == {3: 10, 0: 90}


def test_a_stream_of_short_prompts_cannot_stop_a_long_one() -> None:
    scheduler, long = Scheduler(PROFILE), make_sequence(0, 4000)
    decoding = make_sequence(1, 5, decoding=True)
    num_steps = 0
    while not long.is_decoding:
        shorts = [make_sequence(slot, 20) for slot in (2, 3)]
        carry_out(scheduler.schedule([decoding, long, *shorts]))
        num_steps += 1
    assert num_steps == 4000 // (PROFILE.prefill_chunk // 2)


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    scheduler = Scheduler(PROFILE)
    long, short = make_sequence(0, 4000), make_sequence(2, 30)
    running = [make_sequence(1, 5, decoding=True), long, short]
    for _ in range(3):
        carry_out(scheduler.schedule(running))
    assert short.is_decoding
    assert long.num_computed == 30


def test_pieces_are_ordered_by_slot() -> None:
    sequences = [make_sequence(3, 5), make_sequence(1, 5, decoding=True), make_sequence(0, 5)]
    unified = RuntimeProfile(num_slots=4, is_kv_unified=True)
    assert _shape(Scheduler(unified).schedule(sequences)) == [[(0, 5), (1, 1), (3, 5)]]


def test_slices_have_a_call_of_their_own_in_a_split_cache() -> None:
    sequences = [make_sequence(3, 5), make_sequence(1, 5, decoding=True), make_sequence(0, 5)]
    assert _shape(Scheduler(PROFILE).schedule(sequences)) == [[(1, 1)], [(0, 5), (3, 5)]]


def test_sequences_with_other_adapters_are_computed_in_calls_of_their_own() -> None:
    sequences = [make_sequence(slot, 5) for slot in range(4)]
    for sequence in sequences[1::2]:
        sequence.job = msgspec.structs.replace(sequence.job, loras=((0, 1.0),))
    plan = Scheduler(PROFILE).schedule(sequences)
    assert [[piece.sequence.slot for piece in one] for one in plan.passes] == [[0, 2], [1, 3]]


def test_more_slots_than_budget_still_let_every_sequence_decode() -> None:
    profile = RuntimeProfile(num_slots=8, step_token_budget=4)
    sequences = [make_sequence(slot, 3, decoding=True) for slot in range(8)]
    assert len(plan_sizes(Scheduler(profile), sequences)) == 8


def test_guesses_share_what_the_tokens_leave_and_want_a_row_each() -> None:
    profile = RuntimeProfile(num_slots=2, step_token_budget=6, prefill_chunk=4)
    sequences = [make_sequence(slot, 3, decoding=True) for slot in range(2)]
    for sequence in sequences:
        sequence.drafts = (1, 2, 3)
    first, second = Scheduler(profile).schedule(sequences).pieces
    assert (first.drafts, first.num_rows) == ((1, 2, 3), 4)
    assert (second.drafts, second.num_rows) == ((1,), 2)


def test_guesses_leave_prompts_their_slice() -> None:
    sequences = [make_sequence(slot, 5, decoding=True) for slot in range(3)]
    for sequence in sequences:
        sequence.drafts = (1,) * 40
    profile = msgspec.structs.replace(PROFILE, step_token_budget=50)
    plan = Scheduler(profile).schedule([*sequences, make_sequence(3, 500)])
    assert plan.num_prefill_tokens == profile.prefill_chunk
    assert sum(piece.num_cells for piece in plan.pieces) == profile.step_token_budget


def test_no_call_has_a_row_too_many() -> None:
    """llama.cpp ends the process over one: here the last token of a prompt waits for the next."""
    profile = msgspec.structs.replace(PROFILE, num_draft_tokens=1)
    judged = make_sequence(1, 60, num_prompt_logprobs=1)
    running = [make_sequence(0, 5), judged, make_sequence(2, 60)]
    plan = Scheduler(profile).schedule(running)
    assert sum(piece.num_rows for piece in plan.pieces) <= profile.max_step_rows
    assert plan_sizes(Scheduler(profile), running)[2] == 59


def test_an_odd_budget_stops_no_prompt_of_a_deterministic_deployment() -> None:
    profile = RuntimeProfile(
        num_slots=4, step_token_budget=8, prefill_chunk=1, is_deterministic=True
    )
    first = make_sequence(0, 40)
    for _ in range(40 // profile.prefill_cut):
        decoding = make_sequence(2, 5, decoding=True)
        carry_out(Scheduler(profile).schedule([decoding, first, make_sequence(1, 2)]))
    assert first.is_decoding


def test_rows_of_a_prompt_are_bounded() -> None:
    sequence = make_sequence(0, 90, num_prompt_logprobs=1)
    profile = RuntimeProfile(num_slots=1, num_draft_tokens=0, step_token_budget=100)
    (piece,) = Scheduler(profile).schedule([sequence]).pieces
    assert piece.num_tokens == piece.num_rows == profile.max_step_rows == 32


class TestFewCells:
    def test_prompts_take_what_decoding_sequences_leave(self) -> None:
        sequences = [make_sequence(0, 150), make_sequence(1, 5, decoding=True)]
        plan = Scheduler(PROFILE).schedule(sequences, 6)
        assert [piece.num_tokens for piece in plan.pieces] == [1, 5]
        plan = Scheduler(PROFILE).schedule(sequences, 1)
        assert [piece.num_tokens for piece in plan.pieces] == [1]

    @pytest.mark.parametrize("priorities", [(0, 0, 0), (1, 1, 0), (0, 1, 0), (-1, -1, -1)])
    def test_who_came_last_of_the_least_priority_makes_room(
        self, priorities: tuple[int, ...]
    ) -> None:
        sequences = [
            make_sequence(slot, 5, decoding=True, priority=priority)
            for slot, priority in enumerate(priorities)
        ]
        plan = Scheduler(PROFILE).schedule(sequences, 2)
        assert plan.victim is sequences[2]
        assert not plan.passes

    def test_priority_counts_before_arrival(self) -> None:
        sequences = [
            make_sequence(slot, 5, decoding=True, priority=priority)
            for slot, priority in enumerate((1, 0, 2))
        ]
        assert Scheduler(PROFILE).schedule(sequences, 0).victim is sequences[1]

    def test_prompts_that_cannot_go_on_give_one_up(self) -> None:
        sequences = [make_sequence(0, 50), make_sequence(1, 50)]
        assert Scheduler(PROFILE).schedule(sequences, 0).victim is sequences[1]


class TestDeterministic:
    profile = RuntimeProfile(
        num_slots=4, step_token_budget=100, prefill_chunk=20, is_deterministic=True
    )

    def test_a_slice_of_a_prompt_is_a_call_of_its_own_and_ends_at_a_cut(self) -> None:
        sequences = [
            make_sequence(0, 150),
            make_sequence(1, 5, decoding=True),
            make_sequence(2, 7),
            make_sequence(3, 5, decoding=True),
        ]
        plan = Scheduler(self.profile).schedule(sequences)
        assert _shape(plan) == [[(1, 1), (3, 1)], [(0, 10)], [(2, 7)]]

    def test_a_prefix_of_any_length_is_continued_to_the_next_cut(self) -> None:
        sequence = make_sequence(0, 150)
        sequence.num_computed = 13
        assert _shape(Scheduler(self.profile).schedule([sequence])) == [[(0, 7)]]

    def test_the_cuts_do_not_depend_on_the_load(self) -> None:
        draw = random.Random(3)
        for _ in range(30):
            scheduler = Scheduler(self.profile)
            lengths = [draw.randint(1, 70) for _ in range(4)]
            running = [make_sequence(slot, length) for slot, length in enumerate(lengths)]
            cuts: dict[int, list[int]] = {slot: [] for slot in range(4)}
            while any(not sequence.is_decoding for sequence in running):
                some = [one for one in running if draw.random() < 0.7]
                plan = scheduler.schedule(some)
                for piece in plan.pieces:
                    if not piece.sequence.is_decoding:
                        cuts[piece.sequence.slot].append(
                            piece.sequence.num_computed + piece.num_tokens
                        )
                carry_out(plan)
            for slot, length in enumerate(lengths):
                assert cuts[slot] == [*range(10, length, 10), length]

    def test_no_more_sequences_are_together_than_are_proven(self) -> None:
        sequences = [make_sequence(slot, 5, decoding=True) for slot in range(4)]
        plan = Scheduler(self.profile, max_together=3).schedule(sequences)
        assert _shape(plan) == [[(0, 1), (1, 1), (2, 1)], [(3, 1)]]


def _shape(plan: StepPlan) -> list[list[tuple[int, int]]]:
    return [[(piece.sequence.slot, piece.num_tokens) for piece in one] for one in plan.passes]


@pytest.mark.parametrize("is_deterministic", [False, True])
def test_random_plans_keep_the_invariants_and_end(is_deterministic: bool) -> None:
    draw = random.Random(7)
    for _ in range(100):
        profile = RuntimeProfile(
            num_slots=4,
            step_token_budget=draw.choice([draw.randint(4, 40), 90]),
            prefill_chunk=draw.randint(1, 90),
            num_draft_tokens=draw.choice([1, 16]),
            is_deterministic=is_deterministic,
            is_kv_unified=not is_deterministic and draw.random() < 0.5,
        )
        running = [
            make_sequence(
                slot,
                draw.randint(1, 120),
                decoding=draw.random() < 0.4,
                num_prompt_logprobs=draw.choice([None, None, 1]),
            )
            for slot in draw.sample(range(4), draw.randint(1, 4))
        ]
        run_to_end(draw, Scheduler(profile), running, profile)


def run_to_end(
    draw: random.Random, scheduler: Scheduler, running: list[Sequence], profile: RuntimeProfile
) -> None:
    """Carry plans out until all sequences have five tokens, looking at each plan."""
    for _ in range(400):
        for sequence in running:
            sequence.drafts = (1,) * draw.randint(0, 3) if sequence.is_decoding else ()
        plan = scheduler.schedule(running)
        if not plan.passes:
            assert not running
            return
        check_plan(plan, running, profile)
        carry_out(plan)
        running = [sequence for sequence in running if sequence.num_generated < 5]
    raise AssertionError("some sequence starved")


def check_plan(plan: StepPlan, running: list[Sequence], profile: RuntimeProfile) -> None:
    """Compare a plan with what anybody would ask of one."""
    pieces = list(plan.pieces)
    assert len({id(piece.sequence) for piece in pieces}) == len(pieces)
    decoding = {id(sequence) for sequence in running if sequence.is_decoding}
    assert decoding <= {id(piece.sequence) for piece in pieces}
    assert plan.num_decode == len(decoding)
    for one in plan.passes:
        slots = [piece.sequence.slot for piece in one]
        assert slots == sorted(slots)
        assert sum(piece.num_cells for piece in one) <= profile.max_step_tokens
        assert sum(piece.num_rows for piece in one) <= profile.max_step_rows
    for piece in pieces:
        check_piece(piece)
    prefill = sum(piece.num_tokens for piece in pieces if id(piece.sequence) not in decoding)
    assert prefill == plan.num_prefill_tokens
    if decoding:
        assert prefill <= max(profile.prefill_chunk, profile.prefill_cut)
    if decoding and not any(sequence.wants_prompt_rows for sequence in running):
        left = sum(one.num_left_of_prompt for one in running if not one.is_decoding)
        room = min(profile.prefill_chunk, profile.step_token_budget - len(decoding))
        assert profile.is_deterministic or prefill >= min(left, room), "guesses take from prompts"


def check_piece(piece: Piece) -> None:
    sequence = piece.sequence
    assert 0 < piece.num_tokens <= sequence.num_pending
    if sequence.is_decoding:
        assert piece.num_tokens == 1
        assert piece.num_rows == 1 + len(piece.drafts)
    elif sequence.wants_prompt_rows:
        assert piece.num_rows == piece.num_tokens
    else:
        assert piece.num_rows == int(piece.num_tokens == sequence.num_pending)
