"""Which waiting sequences may have a slot, where all share the cells of one KV cache?"""

from collections.abc import Iterable
from itertools import islice

from inference.engine.sequence import Sequence

FIRST_PART = 256
"""Tokens kept for an answer whose length the client did not bound."""

NEXT_PART = 32
"""Tokens kept for such an answer once it is longer than that."""


def count_admitted(
    waiting: Iterable[Sequence],
    seated: Iterable[Sequence],
    num_free_slots: int,
    num_cells_left: int | None,
) -> int:
    """Tell how many of those that wait, in their order, may be seated now.

    Prompt and ``max_tokens`` must fit beside what the seated ones may yet take, so that nobody who
    named a bound is ever stopped halfway. Without a bound only a part is kept, or a full context
    each would leave the slots empty: such sequences may have to make room later. Nobody overtakes
    who does not fit yet. ``num_cells_left`` is None where each slot has cells of its own.
    """
    candidates = list(islice(waiting, num_free_slots))
    if num_cells_left is None:
        return len(candidates)
    is_empty = True
    for sequence in seated:
        num_cells_left -= num_cells_needed(sequence)
        is_empty = False
    for count, sequence in enumerate(candidates):
        num_cells_left -= num_cells_needed(sequence)
        if num_cells_left < 0 and not (is_empty and count == 0):
            return count
    return len(candidates)


def num_cells_needed(sequence: Sequence) -> int:
    """Tell how many cells a sequence may yet take."""
    num_more = sequence.limit - sequence.num_generated
    if sequence.job.max_tokens is None:
        num_more = min(num_more, max(FIRST_PART - sequence.num_generated, NEXT_PART))
    end = min(sequence.num_tokens + num_more, sequence.context_length)
    return end - sequence.num_computed
