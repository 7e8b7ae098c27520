"""Which slot holds the longest computed beginning of a prompt?

Each slot of the engine owns one KV sequence. Its cells outlive the job that computed them, until
the slot is taken again. A job may reuse cells of its own salt only, wherever they lie.
"""

from dataclasses import dataclass

_CHUNK = 64
_MIN_COPIED = 16
_MAX_WASTE = 24
"""A copy moves all cells of its source: not worth it for less than one in this many."""


class Cells:
    """What a slot's KV sequence holds: the first ``num_computed`` of ``tokens``.

    ``tokens`` is the running sequence's own list, so that a step costs the cache nothing.
    """

    __slots__ = ("is_leased", "num_computed", "order", "salt", "slot", "tokens")

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.salt: str | None = None
        self.tokens: list[int] = []
        self.num_computed = 0
        self.is_leased = False
        self.order = 0


@dataclass(frozen=True, slots=True)
class Match:
    """A usable beginning: its slot, its length now, and its length once that slot has caught up.

    ``order`` tells the lease apart from a later one of the same slot.
    """

    slot: int
    num_tokens: int
    num_promised: int
    order: int = 0


class PrefixCache:
    """The cells of all slots, and who has leased them."""

    def __init__(self, num_slots: int) -> None:
        self._cells = tuple(Cells(slot) for slot in range(num_slots))
        self._num_leases = 0

    @property
    def num_cells(self) -> int:
        """How many cells hold something computed."""
        return sum(cells.num_computed for cells in self._cells)

    def free_slots(self) -> list[int]:
        """List the slots that nobody has leased, the lowest first."""
        return [cells.slot for cells in self._cells if not cells.is_leased]

    def lease(self, slot: int) -> None:
        """Take a free slot; its cells stay what they were until ``assign``."""
        cells = self._cells[slot]
        assert not cells.is_leased
        self._num_leases += 1
        cells.is_leased, cells.order = True, self._num_leases

    def assign(self, slot: int, salt: str, tokens: list[int], num_computed: int) -> None:
        """Say what a leased slot computes from now on; ``tokens`` is shared, not copied."""
        cells = self._cells[slot]
        assert cells.is_leased
        cells.salt, cells.tokens, cells.num_computed = salt, tokens, num_computed

    def advance(self, slot: int, num_computed: int) -> None:
        """Note how many tokens of a leased slot are computed."""
        self._cells[slot].num_computed = num_computed

    def is_catching_up(self, match: Match) -> bool:
        """Tell whether what a match promised is still being computed."""
        cells = self._cells[match.slot]
        return (
            cells.is_leased
            and cells.order == match.order
            and match.num_promised - cells.num_computed >= _MIN_COPIED
        )

    def release(self, slot: int, *, keeps_cells: bool) -> None:
        """Give a slot back; its cells stay usable unless they are said not to be."""
        cells = self._cells[slot]
        assert cells.is_leased
        cells.is_leased = False
        if keeps_cells:
            cells.tokens = cells.tokens[: cells.num_computed]
        else:
            cells.salt, cells.tokens, cells.num_computed = None, [], 0

    def find_prefix(self, slot: int, salt: str, prompt: list[int]) -> Match:
        """Find the best beginning of a prompt for a leased slot. Changes nothing.

        At least one token of the prompt is left to compute, since sampling needs its logits.
        Cells in place win unless a copy saves enough; only slots leased earlier are waited for.
        """
        own = self._cells[slot]
        best = self._match(own, own, salt, prompt)
        for cells in self._cells:
            if cells is own:
                continue
            match = self._match(cells, own, salt, prompt)
            num_promised = match.num_promised - best.num_promised
            num_now = match.num_tokens - best.num_tokens
            if num_promised >= _MIN_COPIED or (num_promised >= 0 and num_now >= _MIN_COPIED):
                best = match
        return best

    def check_integrity(self) -> None:
        """Assert what must always hold."""
        for cells in self._cells:
            assert 0 <= cells.num_computed <= len(cells.tokens)
            assert cells.is_leased or cells.num_computed == len(cells.tokens)
            assert cells.salt is not None or cells.num_computed == 0
        leased = sum(cells.is_leased for cells in self._cells)
        free = sum(not cells.is_leased for cells in self._cells)
        assert leased + free == len(self._cells)
        assert self.num_cells == sum(len(c.tokens[: c.num_computed]) for c in self._cells)

    def _match(self, cells: Cells, own: Cells, salt: str, prompt: list[int]) -> Match:
        if cells.salt != salt:
            return Match(cells.slot, 0, 0)
        num_promised = _common_length(cells.tokens, prompt, len(prompt) - 1)
        if cells is not own and len(cells.tokens) > _MAX_WASTE * num_promised:
            return Match(cells.slot, 0, 0)
        num_now = min(num_promised, cells.num_computed)
        is_promise = cells.is_leased and cells.order < own.order
        return Match(cells.slot, num_now, num_promised if is_promise else num_now, cells.order)


def _common_length(first: list[int], second: list[int], limit: int) -> int:
    """Count the equal tokens at the start, at most ``limit``; compares whole chunks in C."""
    limit = min(limit, len(first), len(second))
    at = 0
    while at < limit:
        end = min(at + _CHUNK, limit)
        if first[at:end] != second[at:end]:
            break
        at = end
    while at < limit and first[at] == second[at]:
        at += 1
    return at
