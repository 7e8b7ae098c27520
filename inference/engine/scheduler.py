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
        self._budget = max(profile.step_token_budget, profile.num_slots)
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
                pieces.append(Piece(sequence, sequence.num_pending))
            else:
                prompts.append(sequence)
        num_decode = len(pieces)
        room = self._budget - num_decode
        if num_decode:
            room = min(room, self._chunk)
        num_prefill = 0
        for sequence in prompts:
            num_tokens = min(sequence.num_pending, room - num_prefill)
            if num_tokens <= 0:
                break
            pieces.append(Piece(sequence, num_tokens))
            num_prefill += num_tokens
        pieces.sort(key=_by_slot)
        return StepPlan(tuple(pieces), num_decode, num_prefill)
