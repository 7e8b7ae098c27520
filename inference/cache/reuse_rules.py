"""How much of what a holder has can a prompt use, now and once the holder has computed more?"""

from dataclasses import dataclass

from inference.cache.holders import Blob, Cells, Holder, Match

MIN_GAIN = 16
"""Tokens that make a copy, a wait or a saved state worth its while."""

MAX_WASTE = 24
"""A copy moves all cells of its source: not worth it for less than one in this many.

Moving a cell costs at most a hundredth of computing it on SmolLM2 (benchmarks/prefix_spill.py),
and larger models gain more.
"""

MAX_SAVED_WASTE = 8
"""A state is saved only where one token in this many, or more, would be lost with it.

To save one takes time from all that runs, and room from other states; many are never asked for.
"""


@dataclass(frozen=True, slots=True)
class ReuseRules:
    """What a model and a deployment allow.

    ``window`` is for how many of its last tokens a copied or saved state is complete: None means
    for all, so that it can be cut anywhere; a state of more tokens can only be used whole (0: a
    recurrent model). ``granularity`` lets prefixes be reused only in multiples of so many tokens.
    In a unified cache a copy shares the cells of its source, and costs nothing.
    """

    window: int | None = None
    granularity: int = 1
    is_unified: bool = False

    def judge(self, holder: Holder, length: int, own: Cells) -> Match:
        """Tell what a holder that shares so many tokens with a prompt can lend to a slot."""
        now = self.floor(min(length, holder.num_tokens))
        if not self.can_cut(holder, now, own) or self._is_wasteful(holder, now, own):
            now = 0
        if isinstance(holder, Blob):
            return Match(holder, now, now)
        later = self._promise(holder, length) if holder.order < own.order else 0
        return Match(holder, now, max(now, later), holder.order)

    def can_cut(self, holder: Holder, num_tokens: int, own: Cells | None) -> bool:
        """Tell whether a holder is still complete once cut to its first tokens, for a slot."""
        length = _length(holder)
        if self.window is None or num_tokens == length or length <= self.window:
            return True
        is_all_there = holder is own or self._is_free(holder)
        return self.window > 0 and is_all_there

    @property
    def can_cut_all(self) -> bool:
        """Whether every holder can be cut to any of its beginnings."""
        return self.window is None

    def stands_for(self, blob: Blob, other: Blob) -> bool:
        """Tell whether a blob makes another of its beginnings needless."""
        if blob.num_tokens == other.num_tokens:
            return True
        is_wasteful = blob.num_tokens > MAX_WASTE * other.num_tokens
        return self.can_cut(blob, other.num_tokens, None) and not is_wasteful

    def is_catching_up(self, match: Match, *, is_awaited: bool = False) -> bool:
        """Tell whether what a match promised is still being computed, and worth waiting for.

        Who has waited for most of it waits for the rest: else each of those who wait would
        compute that rest itself.
        """
        holder = match.holder
        if not isinstance(holder, Cells) or not holder.is_leased or holder.order != match.order:
            return False
        # A context that shifts breaks a promise: what moved up is of use to nobody.
        num_missing = min(match.num_promised, holder.num_usable) - holder.num_tokens
        # What can only be used whole is worth waiting for to the last token.
        return num_missing >= (1 if is_awaited or self.window is not None else MIN_GAIN)

    def num_moved(self, holder: Holder | None) -> int:
        """Give the number of tokens whose state is copied to take from a holder."""
        return 0 if holder is None or self._is_free(holder) else _length(holder)

    def _promise(self, holder: Cells, length: int) -> int:
        """Tell what a running holder can lend once it has computed more of its prompt."""
        if not holder.is_leased:
            return 0
        promised = self.floor(min(length, holder.num_promised, holder.num_usable))
        if self.window is None:
            return promised
        if self.window > 0 and (self.is_unified or holder.num_promised <= self.window):
            return promised
        # It can only be used whole: at the end of its prompt, or where it pauses.
        ends = [end for end in (holder.num_promised, holder.pause_at) if end <= promised]
        return max((end for end in ends if end >= holder.num_computed), default=0)

    def _is_wasteful(self, holder: Holder, num_tokens: int, own: Cells) -> bool:
        return holder is not own and self.num_moved(holder) > MAX_WASTE * num_tokens

    def _is_free(self, holder: Holder) -> bool:
        return self.is_unified and isinstance(holder, Cells)

    def floor(self, num_tokens: int) -> int:
        """Cut a number of tokens to what may be reused."""
        return num_tokens - num_tokens % self.granularity


def _length(holder: Holder) -> int:
    return holder.num_computed if isinstance(holder, Cells) else holder.num_tokens


def is_better(match: Match, other: Match) -> bool:
    """Tell whether to take from one holder rather than from another."""
    return _merit(match) > _merit(other)


def _merit(match: Match) -> tuple[int, int, int]:
    """Order by tokens, then by how near the holder is, then by how little a copy moves."""
    holder = match.holder
    if holder is None:
        return (0, 0, 0)
    nearness = 2 if isinstance(holder, Cells) else int(holder.state is not None)
    return (match.num_tokens, nearness, -_length(holder))
