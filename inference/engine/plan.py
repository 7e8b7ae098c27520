"""What does one step compute?"""

from dataclasses import dataclass

from inference.backend.base import Slice
from inference.engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Piece:
    """The next tokens of one sequence, and behind them guesses that the step shall judge.

    The last ``num_rows`` of all of them give a row of logits each.
    """

    sequence: Sequence
    num_tokens: int
    num_rows: int
    drafts: tuple[int, ...] = ()

    def to_slice(self) -> Slice:
        """Give the backend's view of the piece."""
        sequence, start = self.sequence, self.sequence.num_computed
        tokens = sequence.tokens[start : start + self.num_tokens]
        if self.drafts:
            tokens += self.drafts
        return Slice(sequence.slot, start, tokens, self.num_rows)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The pieces of one step, ordered by slot: llama.cpp computes them in the fewest passes."""

    pieces: tuple[Piece, ...]
    num_decode: int
    num_prefill_tokens: int
