"""What goes when a sequence has filled its context, but may go on?"""

import logging
from collections.abc import Iterable

from inference.backend.base import Backend
from inference.cache.prefix_cache import PrefixCache
from inference.engine.sequence import Sequence
from inference.protocol.replicas import RuntimeProfile

logger = logging.getLogger(__name__)

_MIN_MOVED = 4
"""Tokens that a job's wish to keep its prompt must leave free to go."""
_MIN_SHARE = 8
"""A job's wish may not have less than this part go: each shift may cost the rest anew."""


class ContextShift:
    """Drops half of what a full context holds behind the part that its job keeps, or as it says.

    The tokens behind move up to lower positions: their cells as they are where the model can turn
    them and no other sequence has them; elsewhere they are computed anew.
    """

    def __init__(self, backend: Backend, cache: PrefixCache, profile: RuntimeProfile) -> None:
        self._backend, self._cache = backend, cache
        self._is_on = profile.is_context_shifting
        self._moves_cells = backend.can_shift and not profile.is_kv_unified

    def make_room(self, running: Iterable[Sequence]) -> None:
        """Shift every sequence whose next token would not fit."""
        if not self._is_on:
            return
        for sequence in running:
            if sequence.num_computed >= sequence.context_length:
                self._shift(sequence)

    def _shift(self, sequence: Sequence) -> None:
        num_keep = self._num_kept(sequence)
        num_drop = _num_dropped(sequence.job.num_discard, sequence.num_computed - num_keep)
        logger.debug("job %s drops %d tokens behind %d", sequence.job.id, num_drop, num_keep)
        sequence.shift(num_keep, num_drop)
        self._cache.shift(sequence.slot, num_keep, num_drop)
        if self._moves_cells:
            self._backend.shift(sequence.slot, num_keep, num_drop)
            return
        num_kept = self._backend.keep_prefix(sequence.slot, num_keep)
        sequence.rewind(num_kept)
        self._cache.advance(sequence.slot, num_kept)

    def _num_kept(self, sequence: Sequence) -> int:
        """Tell how many of the first tokens stay: at least the one that begins every text."""
        wanted = sequence.job.num_keep
        if wanted < 0 or wanted > sequence.num_prompt:
            wanted = sequence.num_prompt
        return min(max(wanted, 1), sequence.context_length - _MIN_MOVED)


def _num_dropped(wanted: int, num_free: int) -> int:
    """Tell how many of the tokens go that need not stay; the last one does."""
    if not wanted:
        return num_free // 2
    return min(max(wanted, num_free // _MIN_SHARE), num_free - 1)
