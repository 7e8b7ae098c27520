"""What does one step compute?"""

from collections.abc import Iterator

import msgspec

from inference.backend.base import Slice
from inference.engine.sequence import Sequence


class Piece(msgspec.Struct, frozen=True):
    """The next tokens of one sequence, and behind them guesses that the step shall judge.

    The last ``num_rows`` of all of them give a row of logits each.
    """

    sequence: Sequence
    num_tokens: int
    num_rows: int
    drafts: tuple[int, ...] = ()

    @property
    def num_cells(self) -> int:
        """How many cells of the KV cache the piece needs."""
        return self.num_tokens + len(self.drafts)

    @property
    def num_attended(self) -> int:
        """How many cells its tokens attend to, all together."""
        return self.num_tokens * (2 * self.sequence.num_computed + self.num_tokens) // 2

    def to_slice(self) -> Slice:
        """Give the backend's view of the piece."""
        sequence, start = self.sequence, self.sequence.num_computed
        tokens = sequence.tokens[start : start + self.num_tokens]
        if self.drafts:
            tokens += self.drafts
        return Slice(sequence.slot, start, tokens, self.num_rows)


Pass = tuple[Piece, ...]
"""Pieces that the backend computes in one call, ordered by slot."""


class StepPlan(msgspec.Struct, frozen=True):
    """The calls that make up one step, or the sequence that must make room before there is one.

    ``num_prefill_cells`` is how many cells its tokens of prompts attend to, all together.
    """

    passes: tuple[Pass, ...] = ()
    num_decode: int = 0
    num_prefill_tokens: int = 0
    num_prefill_cells: int = 0
    victim: Sequence | None = None

    @property
    def pieces(self) -> Iterator[Piece]:
        """All pieces of the step, in the order of their calls."""
        return (piece for one in self.passes for piece in one)

    @property
    def num_cells(self) -> int:
        """How many cells of the KV cache the step needs."""
        return sum(piece.num_cells for piece in self.pieces)
