"""What does one step compute?"""

from dataclasses import dataclass

from inference.backend.base import Slice
from inference.engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Piece:
    """The next tokens of one sequence."""

    sequence: Sequence
    num_tokens: int

    @property
    def completes(self) -> bool:
        """Whether nothing of the sequence is left to compute afterwards, so a token is due."""
        return self.num_tokens == self.sequence.num_pending

    def to_slice(self) -> Slice:
        """Give the backend's view of the piece."""
        sequence, start = self.sequence, self.sequence.num_computed
        tokens = sequence.tokens[start : start + self.num_tokens]
        return Slice(sequence.slot, start, tokens, int(self.completes))


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The pieces of one step, ordered by slot: llama.cpp computes them in the fewest passes."""

    pieces: tuple[Piece, ...]
    num_decode: int
    num_prefill_tokens: int
