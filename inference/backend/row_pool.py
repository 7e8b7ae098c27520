"""How do the token rows of an input, which may come over several batches, become one vector?"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
Pooling = Literal["none", "mean", "cls", "last"]


class RowPool:
    """What is known so far of each input that has begun, by its sequence id."""

    def __init__(self, pooling: Pooling, num_columns: int) -> None:
        self._pooling = pooling
        self._nothing = np.empty((0, num_columns), np.float32)
        self._sums: dict[int, NDArray[np.float64]] = {}
        self._counts: dict[int, int] = {}
        self._first_rows: dict[int, Rows] = {}

    def add(self, seq_id: int, rows: Rows, *, is_last: bool) -> Rows:
        """Take the next rows of an input; gives what is due: its vector, once, or every row."""
        match self._pooling:
            case "none":
                return rows.copy()
            case "last":
                return rows[-1:].copy() if is_last else self._nothing
            case "cls":
                first = self._first_rows.setdefault(seq_id, rows[:1].copy())
                return first if is_last else self._nothing
            case "mean":
                return self._add_to_mean(seq_id, rows, is_last=is_last)

    def drop(self, seq_id: int) -> None:
        """Forget an input."""
        self._sums.pop(seq_id, None)
        self._counts.pop(seq_id, None)
        self._first_rows.pop(seq_id, None)

    def _add_to_mean(self, seq_id: int, rows: Rows, *, is_last: bool) -> Rows:
        total = rows.sum(axis=0, dtype=np.float64) + self._sums.get(seq_id, 0.0)
        count = len(rows) + self._counts.get(seq_id, 0)
        if is_last:
            mean: Rows = (total / count).astype(np.float32)[np.newaxis]
            return mean
        self._sums[seq_id], self._counts[seq_id] = total, count
        return self._nothing
