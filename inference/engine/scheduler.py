"""Who computes how many tokens in the next step?"""

from collections.abc import Iterable
from operator import attrgetter

from inference.engine.plan import Piece, StepPlan
from inference.engine.sequence import Sequence
from inference.protocol.replicas import RuntimeProfile

_by_slot = attrgetter("sequence.slot")


class Scheduler:
    """Plans steps under one token budget: sequences that decode first, then slices of prompts."""

    def __init__(self, profile: RuntimeProfile) -> None:
        self._budget = profile.max_step_tokens
        self._max_rows = profile.max_step_rows
        self._chunk = profile.prefill_chunk

    def schedule(self, running: Iterable[Sequence]) -> StepPlan:
        """Plan the next step for sequences given in order of arrival; changes nothing.

        Beside sequences that decode, prompts get ``prefill_chunk`` tokens together, so that a
        long one does not stall the others; alone they get the whole budget.
        """
        pieces = []
        prompts = []
        for sequence in running:
            if sequence.is_decoding:
                pieces.append(_decode_piece(sequence))
            else:
                prompts.append(sequence)
        num_decode = len(pieces)
        room = self._budget - sum(1 + len(piece.drafts) for piece in pieces)
        row_room = self._max_rows - sum(piece.num_rows for piece in pieces)
        if num_decode:
            room = min(room, self._chunk)
        num_prefill = 0
        for sequence in prompts:
            num_tokens = min(sequence.num_prefill - sequence.num_computed, room - num_prefill)
            if sequence.wants_prompt_rows:
                num_tokens = min(num_tokens, row_room)
            if num_tokens <= 0:
                break
            piece = Piece(sequence, num_tokens, sequence.num_rows(num_tokens))
            pieces.append(piece)
            num_prefill += num_tokens
            row_room -= piece.num_rows
        pieces.sort(key=_by_slot)
        return StepPlan(tuple(pieces), num_decode, num_prefill)


def _decode_piece(sequence: Sequence) -> Piece:
    drafts = sequence.drafts
    return Piece(sequence, 1, sequence.num_rows(1) + len(drafts), drafts)
