"""Who computes how many tokens in the next step?"""

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from operator import attrgetter

from inference.engine.plan import Pass, Piece, StepPlan
from inference.engine.sequence import Sequence
from inference.engine.slice_cost import SliceCost
from inference.protocol.replicas import RuntimeProfile

_by_slot = attrgetter("sequence.slot")
_by_adapters = attrgetter("sequence.job.loras")
_by_rest = attrgetter("num_left_of_prompt")


class Scheduler:
    """Plans steps under one token budget: sequences that decode first, then slices of prompts.

    ``max_together`` bounds how many decoding sequences one call may compute, where their number
    would change the numbers. On a deterministic deployment every slice of a prompt is a call of
    its own and ends at a multiple of a fixed length, whatever else there is to do.
    """

    def __init__(
        self,
        profile: RuntimeProfile,
        max_together: int = 0,
        slice_cost: SliceCost | None = None,
    ) -> None:
        self._slice_cost = slice_cost or SliceCost()
        self._budget = profile.max_step_tokens
        self._max_rows = profile.max_step_rows
        self._cut = profile.prefill_cut
        self._chunk = max(self._cut, min(profile.prefill_chunk, self._budget))
        self._max_together = max_together or profile.num_slots
        self._is_unified = profile.is_kv_unified

    def schedule(self, running: SequenceOf[Sequence], num_cells: int | None = None) -> StepPlan:
        """Plan the next step for sequences given in order of arrival; changes nothing.

        ``num_cells`` is how many cells of the KV cache are free or may be freed; None where each
        slot has its own. Beside sequences that decode, prompts get ``prefill_chunk`` tokens
        together, fewer deep in a long one, so that it does not stall the others; alone they get the
        whole budget.
        """
        decoding = [sequence for sequence in running if sequence.is_decoding]
        prompts = [sequence for sequence in running if not sequence.is_decoding]
        room = self._budget if num_cells is None else min(self._budget, num_cells)
        if len(decoding) > room:
            return StepPlan(victim=choose_victim(running))
        chunk = self._chunk_beside(prompts) if decoding and prompts else self._chunk_of(prompts)
        pieces = self._decode(decoding, self._room_to_decode(prompts, chunk, room))
        row_room = self._max_rows
        if not self._cut:  # else prompts have calls of their own, which hold as much as any
            room -= sum(piece.num_cells for piece in pieces)
            row_room -= sum(piece.num_rows for piece in pieces)
        slices = self._slice_prompts(prompts, min(room, chunk), row_room) if prompts else []
        if running and not pieces and not slices:
            return StepPlan(victim=choose_victim(running))
        return StepPlan(
            self._group(pieces, slices),
            num_decode=len(pieces),
            num_prefill_tokens=sum(piece.num_tokens for piece in slices),
            num_prefill_cells=sum(piece.num_attended for piece in slices),
        )

    def _room_to_decode(self, prompts: list[Sequence], chunk: int, room: int) -> int:
        """Tell how many tokens guesses may fill up, without taking the chunk that prompts get."""
        if not prompts:
            return min(room, self._max_rows)
        wanted = sum(sequence.num_left_of_prompt for sequence in prompts)
        return min(room - min(chunk, wanted), self._max_rows - len(prompts))

    def _chunk_of(self, prompts: list[Sequence]) -> int:
        """Tell how many tokens of prompts a step may hold in which nobody decodes.

        One alone is cut into equal slices: a last one of few tokens would cost more for each.
        """
        if self._cut or len(prompts) != 1:
            return self._budget
        num_left = prompts[0].num_left_of_prompt
        return -(-num_left // max(1, -(-num_left // self._budget)))

    def _chunk_beside(self, prompts: list[Sequence]) -> int:
        """Tell how many tokens of prompts a step may hold in which others decode."""
        if self._cut:
            return self._chunk
        deepest = max(sequence.num_computed for sequence in prompts)
        return self._slice_cost.shorten(self._chunk, deepest)

    def _decode(self, decoding: list[Sequence], room: int) -> list[Piece]:
        """Give each its next token; guesses share the room that this leaves, if any."""
        room = max(0, room - len(decoding))
        pieces = []
        for sequence in decoding:
            drafts = sequence.drafts[:room] if sequence.drafts else ()
            room -= len(drafts)
            pieces.append(Piece(sequence, 1, sequence.num_rows(1) + len(drafts), drafts))
        return pieces

    def _slice_prompts(self, prompts: list[Sequence], room: int, row_room: int) -> list[Piece]:
        """Give half the room to who came first, the rest to the prompts with the least left.

        So a short prompt need not wait for a long one, and no stream of short ones can stop it.
        """
        first, others = prompts[0], sorted(prompts[1:], key=_by_rest)
        share = 2 if others else 1
        half = self._slice(first, max(self._cut, -(-room // share)), -(-row_room // share))
        num_tokens, num_rows = (half.num_tokens, half.num_rows) if half else (0, 0)
        slices = []
        for sequence in others:
            piece = self._slice(sequence, room - num_tokens, row_room - num_rows)
            if piece is None:
                continue
            slices.append(piece)
            room -= piece.num_tokens
            row_room -= piece.num_rows
        piece = self._slice(first, room, row_room)
        return [piece, *slices] if piece else slices

    def _slice(self, sequence: Sequence, room: int, row_room: int) -> Piece | None:
        num_tokens = self._length(sequence, room, row_room)
        if num_tokens <= 0:
            return None
        return Piece(sequence, num_tokens, sequence.num_rows(num_tokens))

    def _length(self, sequence: Sequence, room: int, row_room: int) -> int:
        """Tell how much of a prompt the next piece may hold."""
        if sequence.wants_prompt_rows:
            room = min(room, self._max_rows if self._cut else row_room)
        rest = sequence.num_left_of_prompt
        if not self._cut:
            length = min(rest, room)
            # llama.cpp ends the process over a row too many; its last token can wait for one.
            return length - (row_room <= 0 < length and sequence.num_rows(length) > 0)
        to_cut = min(rest, self._cut - sequence.num_computed % self._cut)
        return to_cut if to_cut <= room else 0

    def _group(self, decoding: list[Piece], slices: list[Piece]) -> tuple[Pass, ...]:
        """Make calls of the pieces: one where nothing keeps them apart.

        With a split KV cache llama.cpp takes the same number of tokens of each sequence at once,
        so that a slice beside single tokens would lose its first one to another pass.
        """
        if len(decoding) == 1 and not slices:
            return ((decoding[0],),)
        if self._is_unified:
            return tuple(map(tuple, _split_by(_by_adapters, decoding + slices)))
        together = [
            tuple(group[at : at + self._max_together])
            for group in _split_by(_by_adapters, decoding)
            for at in range(0, len(group), self._max_together)
        ]
        if self._cut:
            return (*together, *((piece,) for piece in slices))
        return (*together, *map(tuple, _split_by(_by_adapters, slices)))


def choose_victim(running: SequenceOf[Sequence]) -> Sequence:
    """Choose who gives its cells up: of the least priority, who came last."""
    return min(reversed(running), key=lambda sequence: sequence.job.priority)


def _split_by(key: Callable[[Piece], object], pieces: list[Piece]) -> list[list[Piece]]:
    """Part pieces that must not be computed in one call; each part is ordered by slot."""
    pieces.sort(key=_by_slot)
    groups: dict[object, list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(key(piece), []).append(piece)
    return list(groups.values())
