"""How do sequences with the same beginning attend to it together?

The main context has a stream of cells for each sequence: attention goes through them one by one,
whatever they have in common. A second, small context has cells that sequences share: there the
tokens of all of them meet each cell in one product of matrices. Sequences that got their beginning
from each other are moved there while that pays, and back when it does not. Their states are copied
for that; the engine does not notice.
"""

import logging
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from inference.backend import native
from inference.backend.base import DecodeError, Rows, Sampler, Sharing, Slice
from inference.backend.devices import list_native_devices
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel
from inference.backend.prefix_groups import (
    MIN_MEMBERS,
    PASS_BYTES,
    Group,
    PrefixGroups,
    count_cells,
    is_worth,
)
from inference.backend.residents import Residents
from inference.backend.state_layout import StateLayout, read_state
from inference.protocol.errors import EngineError
from inference.protocol.jobs import GenerationJob, Loras
from inference.protocol.nodes import usable_gpus
from inference.protocol.replicas import RuntimeProfile

logger = logging.getLogger(__name__)

LOST = -1
"""What llama_decode says of tokens that do not follow those of their sequence."""

_CALLS_BETWEEN = 16
# Where something failed, it is not tried again soon: each try costs moves.
_CALLS_AT_REST = 4096
# Tokens moved before a call, so that nobody waits long for it: a part of a step's time.
_MOVED_TOKENS = 1024
# Who gathers must be able to go on for a while.
_MOST_FULL = 0.8
# Larger states stay where they are: there are two copies of one while it moves.
_MAX_STATE_BYTES = 256 << 20
_NO_LIMIT = 1 << 62


class GroupedBackend:
    """Two contexts that look like one; owned by one thread, like each of them.

    Every sequence is in one of them: those ``_inside`` in the small one, which has ``num_cells``
    and keeps values as columns. Saved states are those of either, and go back to the main one.
    """

    def __init__(self, main: LlamaBackend, side: LlamaBackend, num_cells: int) -> None:
        self.model: LlamaModel = main.model
        self._main, self._side, self._num_cells = main, side, num_cells
        self._main_layout = self._side_layout = StateLayout(num_streams=1, is_transposed=True)
        self._groups = PrefixGroups()
        self._group = Group(0)
        self._inside = Residents()
        self._wanted: set[int] = set()
        self._lengths: dict[int, int] = {}
        self._recent: set[int] = set()
        self._loras: Loras = ()
        self._num_calls = self._rests_until = 0
        self._weights_bytes = main.model.facts().size_bytes
        self._pass_cells = 0.0

    def sharing_among(self, seq_ids: Iterable[int]) -> Sharing:
        """Tell how many of these share the cells of their beginning now; safe from any thread."""
        num_sequences = sum(seq_id in self._inside for seq_id in seq_ids)
        return Sharing(num_sequences, self._group.length) if num_sequences > 1 else Sharing()

    def use_adapters(self, loras: Loras) -> None:
        """Compute with these LoRA adapters from now on, and with no others."""
        self._loras = loras

    def decode(self, slices: Sequence[Slice]) -> Rows:
        """Compute slices, ordered by sequence id; raises DecodeError."""
        self._num_calls += 1
        if self._num_calls % _CALLS_BETWEEN == 0:
            self._review()
        if self._wanted or self._inside:
            self._move()
        rows = self._decode(slices)
        for piece in slices:
            self._lengths[piece.seq_id] = piece.start + len(piece.tokens)
            self._recent.add(piece.seq_id)
            self._inside.note_call(piece.seq_id, self._num_calls)
        return rows

    def open_sampler(self, job: GenerationJob) -> Sampler:
        """Build the sampler of a job; raises EngineError. Safe to call from any thread."""
        return self._main.open_sampler(job)

    @property
    def can_shift(self) -> bool:
        """Whether computed tokens can be moved to lower positions."""
        return self._main.can_shift

    def shift(self, seq_id: int, num_keep: int, num_drop: int) -> None:
        """Drop tokens behind the first of a sequence, and move what follows up to them.

        The next call turns its cells, and no state may be saved before: it is in no group now.
        """
        self._leave([seq_id])
        self._groups.forget(seq_id)
        self._main.shift(seq_id, num_keep, num_drop)
        self._lengths[seq_id] = max(0, self._lengths.get(seq_id, 0) - num_drop)

    @property
    def state_window(self) -> int | None:
        """For how many of its last tokens a copied or saved state is complete; None for all."""
        return self._main.state_window

    def keep_prefix(self, seq_id: int, num_tokens: int) -> int:
        """Drop all but the first tokens of a sequence; returns how many stayed: all or none."""
        group = self._inside.group_of(seq_id)
        if group is not None and 0 < num_tokens < group.length:
            self._leave([seq_id])
        is_inside = seq_id in self._inside
        kept = (self._side if is_inside else self._main).keep_prefix(seq_id, num_tokens)
        self._groups.note_cut(seq_id, kept)
        return self._note(seq_id, kept)

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of another; returns how many it holds now."""
        self._clear(target)
        if not self._wanted or self._inside.group_of(source) is not self._group:
            self._leave([source])
        group = self._groups.note_copy(source, target, num_tokens)
        if source not in self._inside:
            kept = self._main.copy_prefix(source, target, num_tokens)
        elif group is None:
            state = self._save_inside(source)
            kept = self._main.restore_state(target, state, num_tokens) if state else 0
        else:
            kept = self._side.copy_prefix(source, target, num_tokens)
            self._inside.add(source, group)
            self._inside.add(target, group)
            self._wanted.add(target)
            self._group = group
        self._note(target, kept)
        is_outside = kept and source not in self._inside
        if group and is_outside and len(group.members) >= MIN_MEMBERS:
            self._gather(group, self._recent | {source})
            # Who has to leave does so later: slots that are taken next are emptied for nothing.
            self._bring_wanted(0)
        return kept

    def save_state(self, seq_id: int, max_bytes: int) -> memoryview | None:
        """Copy the state of a sequence out of the cache; None where it is too large.

        Most of what is saved is never asked for again, so it is laid out anew only when it is.
        """
        context = self._side if seq_id in self._inside else self._main
        return context.save_state(seq_id, max_bytes)

    def restore_state(self, seq_id: int, state: memoryview, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of a saved state; returns how many it holds."""
        self._clear(seq_id)
        laid = self._lay_out(state)
        return self._note(seq_id, self._main.restore_state(seq_id, laid, num_tokens))

    def close(self) -> None:
        """Free the contexts; the model stays."""
        self._side.close()
        self._main.close()

    def _decode(self, slices: Sequence[Slice]) -> Rows:
        """Compute each slice where its sequence is."""
        inside = [piece for piece in slices if piece.seq_id in self._inside]
        if inside and self._make_room(sum(len(piece.tokens) for piece in inside)):
            inside = [piece for piece in inside if piece.seq_id in self._inside]
        if not inside:
            return self._decode_outside(slices)
        self._side.use_adapters(self._loras)
        try:
            rows = self._side.decode(inside)
        except DecodeError as error:
            # Nobody pays for a context that is not needed; what it computed in part is cut off.
            self._rest(str(error))
            self._leave(sorted(self._inside))
            return self._decode_outside(slices)
        if len(inside) == len(slices):
            return rows
        outside = [piece for piece in slices if piece.seq_id not in self._inside]
        return self._merge(slices, rows, self._decode_outside(outside))

    def _decode_outside(self, slices: Sequence[Slice]) -> Rows:
        """Compute slices in the main context.

        llama.cpp lets an empty sequence begin anywhere: one whose state was lost must not.
        """
        if any(piece.start != self._lengths.get(piece.seq_id, 0) for piece in slices):
            raise DecodeError(LOST)
        self._main.use_adapters(self._loras)
        return self._main.decode(slices)

    def _merge(self, slices: Sequence[Slice], inside: Rows, outside: Rows) -> Rows:
        """Put rows into the order of their slices."""
        merged = np.empty((len(inside) + len(outside), self.model.num_vocab), np.float32)
        at, taken = 0, {True: 0, False: 0}
        for piece in slices:
            is_inside, num_rows = piece.seq_id in self._inside, piece.num_logits
            start = taken[is_inside]
            rows = inside if is_inside else outside
            merged[at : at + num_rows] = rows[start : start + num_rows]
            taken[is_inside], at = start + num_rows, at + num_rows
        return merged

    def _review(self) -> None:
        """See whether what runs now should share cells, or should no longer."""
        recent, self._recent = self._recent, set()
        if not self._wanted:
            group = self._groups.largest_among(recent)
            if group:
                self._gather(group, recent)
            return
        self._wanted = self._group.members & recent
        if not self._is_worth(self._group, recent, is_on=True):
            self._part("it does not pay any more")

    def _gather(self, group: Group, recent: set[int]) -> None:
        """Have those of a group that run move to the small context, if that pays.

        Not while others compute there: what is left of a group that has ended is in nobody's way.
        """
        is_on = bool(self._wanted) and group is self._group
        is_free = all(one in self._inside for one in self._wanted)
        is_free = is_free and self._inside.are_idle(self._num_calls)
        if self._num_calls < self._rests_until or not (is_on or is_free):
            return
        if self._is_worth(group, recent, is_on=False):
            self._group, self._wanted = group, group.members & recent
            logger.debug("%d sequences share %d tokens now", len(self._wanted), group.length)

    def _part(self, reason: str) -> None:
        """Have all sequences move back."""
        self._wanted = set()
        logger.debug("%d sequences share no cells any more: %s", len(self._inside), reason)

    def _rest(self, reason: str) -> None:
        """Have all sequences move back, and stay there for a while."""
        logger.info("sequences share no cells for %d calls: %s", _CALLS_AT_REST, reason)
        self._rests_until = self._num_calls + _CALLS_AT_REST
        self._part(reason)

    def _is_worth(self, group: Group, recent: set[int], *, is_on: bool) -> bool:
        members = group.members & recent
        lengths = {seq_id: self._lengths.get(seq_id, 0) for seq_id in members}
        num_cells = count_cells(group.length, lengths.values())
        if num_cells > self._num_cells * (1.0 if is_on else _MOST_FULL):
            return False
        return is_worth(group, lengths, recent - members, self._pass_cells, is_on=is_on)

    def _move(self) -> None:
        """Move some of the sequences that are not where they should be."""
        self._wanted &= self._group.members
        num_moved = 0
        for seq_id in sorted(set(self._inside) - self._wanted):
            if num_moved < _MOVED_TOKENS:
                num_moved += self._lengths[seq_id]
                self._leave([seq_id])
        self._bring_wanted(num_moved)

    def _bring_wanted(self, num_moved: int) -> None:
        """Move some of those that belong in the small context there."""
        self._wanted &= self._group.members
        is_parting = not self._wanted
        for seq_id in sorted(self._wanted.difference(self._inside)):
            mate = self._inside.mate_of(self._group)
            is_free = mate is not None and self._lengths[seq_id] == self._group.length
            if num_moved < _MOVED_TOKENS or is_free:
                num_moved += 0 if is_free else self._lengths[seq_id]
                self._bring(seq_id, mate)
        if not (is_parting or self._wanted or self._inside):
            self._rest("their states cannot be moved")

    def _bring(self, seq_id: int, mate: int | None) -> None:
        """Move a sequence to the small context, if there is room for it."""
        num_tokens, length = self._lengths[seq_id], self._group.length
        kept = 0
        if mate is not None and num_tokens == length:
            kept = self._side.copy_prefix(mate, seq_id, num_tokens)
        elif num_tokens <= self._num_free():
            kept = self._restore_inside(seq_id, num_tokens)
            if kept and mate is not None:
                self._side.share_prefix(mate, seq_id, length)
        if kept != num_tokens:
            self._wanted.discard(seq_id)
            return
        self._main.keep_prefix(seq_id, 0)
        self._inside.add(seq_id, self._group)

    def _make_room(self, num_tokens: int) -> bool:
        """Move sequences back until so many cells are free; tells whether any had to go.

        First those that nobody computes.
        """
        if num_tokens <= self._num_free():
            return False
        inside = sorted(self._inside, key=lambda one: (one in self._wanted, -self._lengths[one]))
        for seq_id in inside:
            if seq_id in self._wanted:
                self._part("they need more cells than there are")
            self._leave([seq_id])
            if num_tokens <= self._num_free():
                break
        return True

    def _restore_inside(self, seq_id: int, num_tokens: int) -> int:
        state = self._main.save_state(seq_id, _MAX_STATE_BYTES)
        saved = read_state(state) if state else None
        if state is None or saved is None:
            return 0
        self._main_layout = saved.layout
        self._pass_cells = self._weights_bytes * num_tokens / state.nbytes / PASS_BYTES
        return self._side.restore_state(seq_id, saved.write(self._side_layout), num_tokens)

    def _save_inside(self, seq_id: int) -> memoryview | None:
        """Save the state of a sequence of the small context for the main one."""
        state = self._side.save_state(seq_id, _NO_LIMIT)
        saved = read_state(state) if state else None
        return saved.write(self._main_layout) if saved else None

    def _lay_out(self, state: memoryview) -> memoryview:
        """Give a saved state, of whichever context, as the main one takes it."""
        saved = read_state(state)
        is_of_side = saved is not None and saved.layout == self._side_layout
        return saved.write(self._main_layout) if saved and is_of_side else state

    def _leave(self, seq_ids: Sequence[int]) -> None:
        """Move sequences back; one whose state is lost is empty, and computed anew."""
        for seq_id in seq_ids:
            if seq_id not in self._inside:
                continue
            state = self._save_inside(seq_id)
            self._side.keep_prefix(seq_id, 0)
            self._inside.discard(seq_id)
            num_tokens = self._lengths[seq_id]
            kept = self._main.restore_state(seq_id, state, num_tokens) if state else 0
            if kept != num_tokens:
                logger.warning("the %d tokens of a sequence are lost", num_tokens)
                self._clear(seq_id)

    def _clear(self, seq_id: int) -> None:
        """Empty a sequence, wherever it is."""
        if seq_id in self._inside:
            self._side.keep_prefix(seq_id, 0)
            self._inside.discard(seq_id)
        else:
            self._main.keep_prefix(seq_id, 0)
        self._groups.forget(seq_id)
        self._lengths[seq_id] = 0

    def _note(self, seq_id: int, kept: int) -> int:
        """Note how many tokens a sequence has, which may be none."""
        self._lengths[seq_id] = kept
        if kept:
            self._recent.add(seq_id)
        else:
            self._groups.forget(seq_id)
            self._inside.discard(seq_id)
        return kept

    def _num_free(self) -> int:
        """Tell how many cells of the small context are free."""
        return self._num_cells - self._inside.num_cells(self._lengths)


def open_backend(model: LlamaModel, profile: RuntimeProfile) -> LlamaBackend | GroupedBackend:
    """Make the context of a model for generation, and the small one beside it where it helps.

    Raises EngineError. GPUs attend to many sequences at once anyway, and a state that cannot be cut
    cannot be shared in part.
    """
    main = LlamaBackend(model, profile)
    num_cells = profile.group_cells(model.context_length)
    has_gpu = profile.num_gpu_layers != 0 and usable_gpus(list_native_devices())
    if not num_cells or has_gpu or main.state_window is not None:
        return main
    shared = msgspec.structs.replace(
        profile, is_kv_unified=True, kv_cells=num_cells, flash_attention="off"
    )
    try:
        # It takes all cells for one sequence's, longer than the model was trained for.
        with native.lines_left_out("> n_ctx_train"):
            side = LlamaBackend(model, shared)
        return GroupedBackend(main, side, num_cells)
    except EngineError as error:
        logger.warning("sequences cannot share the cells of their beginning: %s", error)
        return main
