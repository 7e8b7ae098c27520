"""How full would the KV cache be that all sequences of a fake share?"""

from collections.abc import Iterable
from itertools import count


class FakeCells:
    """The cells of each sequence, by number; a copy shares those of its source."""

    def __init__(self, num_cells: int) -> None:
        self.num_cells = num_cells
        self._numbers = count()
        self._cells: dict[int, list[int]] = {}

    @property
    def num_used(self) -> int:
        """How many cells any sequence has."""
        return len(set().union(*self._cells.values()))

    def take(self, wanted: Iterable[tuple[int, int]]) -> bool:
        """Give sequences more cells: to all what they want, or nothing to any."""
        wanted = list(wanted)
        if self.num_used + sum(number for _, number in wanted) > self.num_cells:
            return False
        for seq_id, number in wanted:
            cells = self._cells.setdefault(seq_id, [])
            cells.extend(next(self._numbers) for _ in range(number))
        return True

    def keep(self, seq_id: int, num_tokens: int) -> None:
        """Take all but a sequence's first cells from it."""
        del self._cells.setdefault(seq_id, [])[num_tokens:]

    def share(self, source: int, target: int, num_tokens: int) -> None:
        """Make the first cells of a sequence those of another too."""
        self._cells[target] = self._cells.get(source, [])[:num_tokens]
