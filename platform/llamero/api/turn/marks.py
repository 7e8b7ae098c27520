"""Marks in a text that comes in parts."""

import re
from collections.abc import Iterable


class Marks:
    """Some marks: where the first of them stands, and what may yet become one."""

    def __init__(self, marks: Iterable[str]) -> None:
        self._marks = sorted(filter(None, marks), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._marks)))
        self._beginnings = frozenset(
            mark[:length] for mark in self._marks for length in range(1, len(mark))
        )
        self._longest = max(map(len, self._beginnings), default=0)

    def find(self, text: str) -> tuple[int, str] | None:
        """Give the place of the first mark, and the mark."""
        found = self._pattern.search(text) if self._marks else None
        return (found.start(), found[0]) if found else None

    def num_held(self, text: str) -> int:
        """Count the characters at the end of a text that may be the beginning of a mark."""
        for length in range(min(self._longest, len(text)), 0, -1):
            if text[-length:] in self._beginnings:
                return length
        return 0
