"""Which lines are done, as few ranges: a batch of thousands is done nearly in order."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence


class LineRanges:
    """A set of line numbers, kept as ranges that neither touch nor overlap."""

    def __init__(self, ranges: Iterable[Sequence[int]] = ()) -> None:
        self._ranges = [(first, last) for first, last in ranges]

    def __contains__(self, line: int) -> bool:
        place = bisect_right(self._ranges, (line, line))
        if place < len(self._ranges) and self._ranges[place][0] == line:
            return True
        return place > 0 and line <= self._ranges[place - 1][1]

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self._ranges)

    def add(self, line: int) -> None:
        """Add one line; adding it twice is adding it once."""
        if line in self:
            return
        place = bisect_right(self._ranges, (line, line))
        first = last = line
        if place < len(self._ranges) and self._ranges[place][0] == line + 1:
            last = self._ranges.pop(place)[1]
        if place > 0 and self._ranges[place - 1][1] == line - 1:
            place -= 1
            first = self._ranges.pop(place)[0]
        self._ranges.insert(place, (first, last))

    def as_list(self) -> list[list[int]]:
        """Give them as they are stored."""
        return [[first, last] for first, last in self._ranges]
