"""Does a sequence compute the same beside others as alone, bit by bit?"""

import logging
from collections.abc import Iterable

from inference.backend.base import Backend, Slice

logger = logging.getLogger(__name__)

_LONG = 520
"""Some kernels look different from 512 cells on."""
_SHORT = 6
_SLICE = 32


def count_independent(backend: Backend, num_slots: int) -> int:
    """Tell how many sequences one call may decode so that none notices the others.

    It is tried, with every number of sequences, since it depends on the machine's kernels, the
    types of the weights and more. What cannot be tried (a model whose sequences cannot step back)
    is computed one by one. The slots must be empty, and are empty afterwards.
    """
    if backend.state_window == 0:
        return 1
    probe = _Probe(backend, num_slots)
    alone = [probe.decode([slot])[0] for slot in range(num_slots)]
    count = 1
    while count < num_slots:
        rows = probe.decode(range(count + 1))
        if rows != alone[: count + 1]:
            break
        count += 1
    probe.clear()
    if count < num_slots:
        logger.warning("a deterministic step decodes at most %d sequences in one call", count)
    return count


class _Probe:
    """A few tokens in each slot but the last, which has many, and the next token of each."""

    def __init__(self, backend: Backend, num_slots: int) -> None:
        self._backend = backend
        facts = backend.model.facts()
        self._num_vocab = facts.num_vocab
        self._lengths = [_SHORT + slot % 3 for slot in range(num_slots)]
        # In the second slot, so that every number of sequences is tried beside it.
        self._lengths[min(1, num_slots - 1)] = max(2, min(_LONG, facts.context_length - 1))
        for slot, length in enumerate(self._lengths):
            for start in range(0, length, _SLICE):
                tokens = self._tokens(slot, start, min(_SLICE, length - start))
                backend.decode([Slice(slot, start, tokens, 0)])

    def decode(self, slots: Iterable[int]) -> list[bytes]:
        """Compute the next token of each slot in one call, and take it back."""
        slices = [
            Slice(slot, self._lengths[slot], self._tokens(slot, self._lengths[slot], 1), 1)
            for slot in slots
        ]
        rows = [row.tobytes() for row in self._backend.decode(slices)]
        for one in slices:
            self._backend.keep_prefix(one.seq_id, one.start)
        return rows

    def clear(self) -> None:
        """Empty all slots."""
        for slot in range(len(self._lengths)):
            self._backend.keep_prefix(slot, 0)

    def _tokens(self, slot: int, start: int, count: int) -> list[int]:
        return [(slot * 31 + at * 7) % self._num_vocab for at in range(start, start + count)]
