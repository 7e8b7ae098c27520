"""Sequences that share a beginning move to a small context and back; nobody else can tell."""

import random
from typing import Any, cast

import numpy as np
import pytest

from inference.backend.base import NO_CELLS, DecodeError, Slice
from inference.backend.grouped import GroupedBackend
from inference.backend.prefix_groups import (
    MIN_LENGTH,
    Group,
    PrefixGroups,
    is_worth,
)
from inference.backend.state_layout import StateLayout, read_state
from tests.inference.backend.token_contexts import TokenContext, row_of

NUM_SLOTS = 8
NUM_CELLS = 1200


class Pair:
    """A grouped backend over two contexts of tokens, and what its sequences should hold."""

    def __init__(self, num_cells: int = NUM_CELLS, size_bytes: int = 0) -> None:
        self.main, self.side = TokenContext(NUM_SLOTS), TokenContext(NUM_SLOTS, num_cells)
        self.main.size_bytes = size_bytes
        self.backend = GroupedBackend(cast("Any", self.main), cast("Any", self.side), num_cells)
        self.held: list[list[int]] = [[] for _ in range(NUM_SLOTS)]

    def decode(self, pieces: dict[int, list[int]]) -> None:
        """Compute tokens of some sequences, and compare the rows of their last ones."""
        slices = [Slice(seq, len(self.held[seq]), pieces[seq], 1) for seq in sorted(pieces)]
        rows = self.backend.decode(slices).copy()
        for seq in pieces:
            self.held[seq] += pieces[seq]
        for row, seq in zip(rows, sorted(pieces), strict=True):
            assert (row == row_of(self.held[seq])).all()

    def copy(self, source: int, target: int, num_tokens: int) -> None:
        """Copy a beginning."""
        assert self.backend.copy_prefix(source, target, num_tokens) == num_tokens
        self.held[target] = self.held[source][:num_tokens]

    def keep(self, seq: int, num_tokens: int) -> None:
        """Cut a sequence."""
        assert self.backend.keep_prefix(seq, num_tokens) == num_tokens
        del self.held[seq][num_tokens:]

    def shift(self, seq: int, num_keep: int, num_drop: int) -> None:
        """Drop tokens of a sequence behind the first, and go on with it."""
        self.backend.shift(seq, num_keep, num_drop)
        del self.held[seq][num_keep : num_keep + num_drop]
        self.decode({seq: [3]})

    def check(self) -> None:
        """Assert that each sequence is in one context only, with the tokens it should have."""
        for seq, tokens in enumerate(self.held):
            inside, outside = self.side.tokens(seq), self.main.tokens(seq)
            assert tokens == inside + outside and not (inside and outside)
        told = self.backend._inside.num_cells(self.backend._lengths)
        assert self.num_side_cells() <= told, "cells are in use that nobody counts"
        self.side.check_room()

    @property
    def num_sharing(self) -> int:
        """Count the sequences that share cells."""
        return self.backend.sharing_among(range(NUM_SLOTS)).num_sequences

    def num_side_cells(self) -> int:
        """Count the cells in use of the small context."""
        return len({id(cell) for held in self.side.cells for cell in held})


def grouped_pair(num_cells: int = NUM_CELLS, size_bytes: int = 0) -> Pair:
    """Have all sequences share a beginning of 200 tokens, and compute a few more each."""
    pair = Pair(num_cells, size_bytes)
    pair.decode({0: [*range(200), 777]})
    for target in range(1, NUM_SLOTS):
        pair.copy(0, target, 200)
    pair.decode({seq: [1000 + seq, 2000 + seq] for seq in range(1, NUM_SLOTS)})
    return pair


def test_a_shared_beginning_is_held_once() -> None:
    pair = grouped_pair()
    assert pair.num_sharing == NUM_SLOTS
    assert pair.num_side_cells() == 200 + 1 + 2 * (NUM_SLOTS - 1)
    pair.check()


def test_who_shares_nothing_runs_beside_them_and_rows_keep_their_order() -> None:
    pair = grouped_pair()
    pair.keep(3, 0)
    pair.decode({3: [5, 6, 7]})
    pair.decode({seq: [seq] for seq in range(NUM_SLOTS)})
    assert pair.num_sharing == NUM_SLOTS - 1
    pair.check()


def test_they_part_when_what_is_their_own_outgrows_what_they_share() -> None:
    pair = grouped_pair(num_cells=3000)
    counts = []
    for step in range(180):
        pair.decode({seq: [step] for seq in range(NUM_SLOTS)})
        pair.check()
        counts.append(pair.num_sharing)
    assert counts == sorted(counts, reverse=True) and counts[-1] == 0
    # No call waits for the moves of all.
    assert {3, 5} & set(counts)


def test_who_has_ended_makes_room_and_comes_back() -> None:
    pair = grouped_pair()
    for step in range(40):
        pair.decode({seq: [step] for seq in range(6)})
    assert pair.num_sharing == 6
    pair.keep(7, 200)
    for step in range(20):
        pair.decode({seq: [step] for seq in (0, 1, 2, 3, 4, 5, 7)})
    assert pair.num_sharing == 7
    pair.check()


def test_they_part_rather_than_run_out_of_cells() -> None:
    pair = grouped_pair(num_cells=300)
    for step in range(30):
        pair.decode({seq: [step] for seq in range(NUM_SLOTS)})
    assert pair.num_sharing == 0
    pair.check()


@pytest.mark.parametrize("code", [NO_CELLS, -1, -3])
def test_nobody_pays_where_the_small_context_fails_and_it_rests(code: int) -> None:
    pair = grouped_pair()
    for _ in range(40):
        pair.side.fails_with = code
        pair.decode({seq: [9] for seq in range(NUM_SLOTS)})
        assert pair.num_sharing == 0
    pair.check()


def test_what_one_context_computed_before_the_other_failed_is_cut_off() -> None:
    pair = grouped_pair()
    pair.keep(3, 0)
    pair.decode({3: [5, 6, 7]})
    pair.main.fails_with = -3
    with pytest.raises(DecodeError, match="code -3"):
        pair.backend.decode([Slice(seq, len(pair.held[seq]), [9], 1) for seq in range(NUM_SLOTS)])
    for seq in range(NUM_SLOTS):
        pair.keep(seq, len(pair.held[seq]))
        pair.decode({seq: [9]})
    pair.check()


def test_a_lost_state_empties_its_sequence_and_no_other() -> None:
    pair = grouped_pair()
    pair.side.refuses_states = True
    pair.backend.shift(2, 10, 5)
    with pytest.raises(DecodeError):
        pair.backend.decode([Slice(2, 197, [9], 1)])
    assert pair.backend.keep_prefix(2, 197) == 0
    pair.held[2] = []
    pair.side.refuses_states = False
    pair.decode({seq: [9] for seq in range(NUM_SLOTS)})
    pair.check()


def test_states_that_cannot_be_moved_leave_everything_where_it_is() -> None:
    pair = Pair()
    pair.main.refuses_states = True
    pair.decode({0: [*range(200), 777]})
    for target in range(1, NUM_SLOTS):
        pair.copy(0, target, 200)
    for step in range(100):
        pair.decode({seq: [step] for seq in range(NUM_SLOTS)})
    assert pair.num_sharing == 0 and pair.main.num_saves <= NUM_SLOTS
    pair.check()


def test_who_is_shifted_stays_outside_until_its_cells_are_turned() -> None:
    pair = grouped_pair()
    for seq in range(NUM_SLOTS):
        for _ in range(3):
            pair.decode({one: [one] for one in range(NUM_SLOTS)})
        pair.shift(seq, 201, 2)
        pair.check()


def test_nobody_joins_those_that_part() -> None:
    pair = grouped_pair()
    pair.backend._wanted = set()
    pair.keep(7, 0)
    pair.copy(1, 7, 200)
    assert pair.side.tokens(1) == pair.side.tokens(7) == []
    pair.check()


def test_others_between_the_members_cost_passes_of_their_own() -> None:
    pair = grouped_pair(size_bytes=24 * 6000)
    for seq in (2, 4, 6):
        pair.keep(seq, 0)
        pair.decode({seq: [5, 6, 7]})
    for step in range(40):
        pair.decode({seq: [step] for seq in range(NUM_SLOTS)})
    assert pair.num_sharing == 0
    pair.check()


def test_only_contexts_that_compute_change_their_adapters() -> None:
    pair = grouped_pair()
    pair.backend.use_adapters(((0, 1.0),))
    pair.decode({seq: [9] for seq in range(NUM_SLOTS)})
    assert pair.side.loras == ((0, 1.0),) and pair.main.loras == ()
    pair.keep(3, 0)
    pair.decode({3: [5], 4: [6]})
    assert pair.main.loras == ((0, 1.0),)


def test_states_saved_in_either_context_come_back_to_the_main_one() -> None:
    pair = grouped_pair()
    state = pair.backend.save_state(4, 1 << 20)
    assert state is not None and pair.backend.save_state(4, state.nbytes - 1) is None
    pair.keep(5, 0)
    assert pair.backend.restore_state(5, state, 201) == 201
    pair.held[5] = pair.held[4][:201]
    pair.check()


def test_what_is_left_of_a_group_neither_moves_nor_stops_the_next_one() -> None:
    pair = grouped_pair(num_cells=3000)
    num_saves = pair.side.num_saves
    pair.keep(0, 0)
    for start in range(0, 200, 50):
        pair.decode({0: [*range(5000 + start, 5000 + start + 50)]})
    for target in range(1, NUM_SLOTS):
        pair.copy(0, target, 200)
        pair.check()
    pair.decode({seq: [seq] for seq in range(NUM_SLOTS)})
    pair.check()
    assert pair.num_sharing == NUM_SLOTS and pair.side.num_saves == num_saves
    assert pair.num_side_cells() == 200 + NUM_SLOTS


def test_a_group_that_computes_is_not_pushed_out_by_another() -> None:
    pair = Pair(num_cells=3000)
    pair.decode({0: [*range(200)]})
    for target in range(1, 4):
        pair.copy(0, target, 200)
    pair.decode({seq: [seq] for seq in range(4)})
    pair.decode({4: [*range(5000, 5200)]})
    for target in range(5, 8):
        pair.copy(4, target, 200)
    for step in range(20):
        pair.decode({seq: [step] for seq in range(NUM_SLOTS)})
        pair.check()
    assert [seq for seq in range(NUM_SLOTS) if pair.side.tokens(seq)] == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(1, 8))
def test_random_operations_agree_with_lists_of_tokens(seed: int) -> None:
    rng = random.Random(seed)
    pair = Pair(num_cells=rng.choice([500, 900, 3000]))
    blobs: list[tuple[memoryview, list[int]]] = []
    most_inside = 0
    for _ in range(500):
        random_operation(pair, rng, blobs)
        pair.check()
        most_inside = max(most_inside, pair.num_sharing)
    assert most_inside >= 4


def random_operation(
    pair: Pair, rng: random.Random, blobs: list[tuple[memoryview, list[int]]]
) -> None:
    """Do one thing that an engine might."""
    source, target = rng.sample(range(NUM_SLOTS), 2)
    held = pair.held[source]
    kind = rng.choice(["decode"] * 8 + ["copy"] * 3 + ["prompt", "keep", "shift", "save", "load"])
    if kind == "decode":
        count = rng.randint(1, NUM_SLOTS)
        pair.decode({seq: [rng.randrange(50)] for seq in rng.sample(range(NUM_SLOTS), count)})
    elif kind == "prompt" and len(held) < 300:
        pair.decode({source: [rng.randrange(50) for _ in range(rng.randint(1, 200))]})
    elif kind == "copy" and held:
        num_tokens = len(held) if rng.random() < 0.5 else rng.randint(1, len(held))
        for one in rng.sample(range(NUM_SLOTS), rng.choice([1, 5])):
            if one != source:
                pair.copy(source, one, num_tokens)
    elif kind == "keep":
        pair.keep(source, rng.choice([0, len(held), rng.randint(0, len(held))]))
    elif kind == "shift" and len(held) > 150:
        pair.shift(source, rng.randint(1, len(held) - 10), rng.randint(1, 9))
    elif kind == "save" and (state := pair.backend.save_state(source, 1 << 20)):
        blobs.append((state, list(held)))
    elif kind == "load" and blobs:
        state, tokens = rng.choice(blobs)
        num_tokens = rng.randint(1, len(tokens))
        assert pair.backend.restore_state(target, state, num_tokens) == num_tokens
        pair.held[target] = tokens[:num_tokens]


def test_a_group_needs_members_a_length_and_a_gain() -> None:
    group = Group(500)
    alike = dict.fromkeys(range(16), 520)
    assert is_worth(group, alike, set(), 9e9, is_on=False)
    assert not is_worth(group, dict(list(alike.items())[:3]), set(), 0, is_on=False)
    assert not is_worth(group, dict.fromkeys(range(16), 900), set(), 0, is_on=True)


def test_a_group_pays_for_the_passes_that_others_need() -> None:
    group = Group(500)
    alike = dict.fromkeys(range(0, 16, 2), 520)
    assert is_worth(group, alike, {16, 17}, 1000, is_on=False)
    assert is_worth(group, alike, {1}, 1000, is_on=False)
    assert not is_worth(group, alike, {1, 3, 5, 7, 9, 11, 13, 15}, 1000, is_on=True)


def test_groups_follow_who_copies_from_whom() -> None:
    groups = PrefixGroups()
    assert groups.note_copy(0, 1, MIN_LENGTH - 1) is None and not groups
    group = groups.note_copy(0, 1, 500)
    assert group and groups.note_copy(1, 2, 480) is group and group.length == 480
    assert groups.note_copy(2, 3, 200) is None and groups.of(3) is None
    groups.note_cut(2, 480)
    assert group.members == {0, 1, 2}
    groups.note_cut(2, 479)
    assert group.members == {0, 1} and groups.largest_among([0, 2]) is group
    groups.forget(1)
    assert not groups and groups.of(0) is None


def test_states_change_their_layout_and_back() -> None:
    split, shared = TokenContext(4), TokenContext(4, 100)
    split.decode([Slice(2, 0, [*range(10)], 1)])
    state = split.save_state(2, 1 << 20)
    saved = state and read_state(state)
    assert saved and saved.layout == StateLayout(4, False)
    laid = saved.write(StateLayout(1, True))
    assert laid and shared.restore_state(3, laid, 10) == 10
    moved = read_state(laid)
    back = moved and moved.write(StateLayout(4, False))
    assert back and split.restore_state(1, back, 10) == 10
    assert split.tokens(1) == split.tokens(2) == shared.tokens(3)


def test_what_is_no_state_of_plain_cells_is_refused() -> None:
    context = TokenContext(4)
    context.decode([Slice(0, 0, [*range(10)], 1)])
    state = context.save_state(0, 1 << 20)
    assert state
    rng = np.random.default_rng(1)
    damaged = [state[:size] for size in range(len(state))] + [memoryview(bytes(state) + b"\0")]
    damaged += [memoryview(rng.bytes(int(rng.integers(0, 400)))) for _ in range(200)]
    # The greatest size of a row that can be told.
    row_at = 12 + 4 + 10 * 12 + 8 + 4
    damaged.append(memoryview(bytes(state[:row_at]) + b"\xff" * 8 + bytes(state[row_at + 8 :])))
    assert not any(read_state(one) for one in damaged)
