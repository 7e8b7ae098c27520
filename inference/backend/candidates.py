"""Which tokens may still come, as the array that llama.cpp's samplers sort, cut and weigh?"""

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference.backend import native
from inference.backend.base import Row
from inference.backend.draws import pick

CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
# e**-70 is still a normal float: what lies below has a probability that rounds to 0 somewhere.
_UNLIKELY = np.float32(70)


class _TokenArray(ctypes.Structure):
    """llama.cpp's llama_token_data_array, with a plain address for its data."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("selected", ctypes.c_int64),
        ("sorted", ctypes.c_bool),
    )


@dataclass(frozen=True, slots=True)
class Cut:
    """How few tokens the first sampler that cuts can leave over.

    They lie within one of ``margins`` below the best logit, the first margin that holds
    ``num_needed`` tokens.
    """

    margins: tuple[float, ...]
    num_needed: int


class Candidates:
    """Refilled for each token; all sequences of a backend share it, as one thread samples."""

    def __init__(self, num_vocab: int) -> None:
        self._fresh = np.zeros(num_vocab, CANDIDATE)
        self._fresh["id"] = np.arange(num_vocab)
        self._array = self._fresh.copy()
        # numpy copies bytes at once, but the fields of a structure one by one.
        self._fresh_bytes, self._bytes = self._fresh.view(np.uint8), self._array.view(np.uint8)
        self._ids, self._logits = self._array["id"], self._array["logit"]
        self._start = self._array.ctypes.data
        self._native = _TokenArray()
        self._address = ctypes.addressof(self._native)
        self._weights: NDArray[np.float32] = np.empty(0, np.float32)

    def fill(self, row: Row) -> bool:
        """Start over with the whole vocabulary; tells whether anything in it is possible."""
        self._bytes[:] = self._fresh_bytes
        self._logits[:] = row
        self._reset(len(row))
        return bool(row.max() > -np.inf)

    def fill_likely(self, row: Row, cut: Cut, touched: NDArray[np.int32]) -> bool:
        """Start over with what a cut leaves over, and the tokens that penalties may touch.

        A penalty can push any of those below what is not penalized, so the others alone must be
        as many as needed.
        """
        if len(touched):
            kept = row[touched]
            row[touched] = -np.inf
            ids = _within(row, cut)
            row[touched] = kept
            if ids is not None:
                ids = np.concatenate((ids, touched[kept > -np.inf]))
        else:
            ids = _within(row, cut)
        if ids is None:
            return self.fill(row)
        self.keep(ids.astype(np.int32), row[ids])
        return True

    def apply(self, sampler: int) -> None:
        """Let a native sampler work on what is left."""
        native.sampler_apply(sampler, self._address)

    def likeliest(self, count: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give so many tokens, or all there are, best first, and their logits."""
        left = self._left()
        logits = left["logit"]
        if len(left) > count:
            left = left[np.argpartition(-logits, count)[:count]]
            logits = left["logit"]
        order = np.argsort(-logits, kind="stable")
        return left["id"][order], logits[order]

    def keep(self, ids: NDArray[np.int32], logits: NDArray[np.float32]) -> None:
        """Leave over these tokens alone."""
        self._ids[: len(ids)] = ids
        self._logits[: len(ids)] = logits
        self._reset(len(ids))

    def drop_unlikely(self) -> bool:
        """Leave out what has no measurable chance; tells whether anything is left.

        Some native samplers take the logarithm of each probability, and sort by what they get.
        """
        left = self._left()
        logits = left["logit"]
        best = logits.max()
        if logits.min() < best - _UNLIKELY:
            kept = left[logits >= best - _UNLIKELY]
            left[: len(kept)] = kept
            self._native.size = len(kept)
        return bool(best > -np.inf)

    def pick(self, draw: float) -> int:
        """Choose by the probabilities that the logits left over mean; -1 where none is possible."""
        left = self._left()
        logits = left["logit"]
        best = logits.max()
        if not -np.inf < best < np.inf:
            # A temperature close to 0 makes the best infinite, and others too perhaps: the first
            # is the best, as whatever sets such a temperature sorts.
            return self.best()
        self._weights = np.exp(logits - best)
        at = pick(self._weights, draw)
        return int(left["id"][at]) if at >= 0 else -1

    def best(self) -> int:
        """Choose the most likely token; -1 where none is possible."""
        left = self._left()
        logits = left["logit"]
        at = int(logits.argmax())
        self._weights = (np.arange(len(left)) == at).astype(np.float32)
        return int(left["id"][at]) if logits[at] > -np.inf else -1

    def selected(self) -> int:
        """Give what a native sampler chose; -1 where that is nothing possible."""
        left, at = self._left(), int(self._native.selected)
        self._weights = left["p"].copy()
        if not 0 <= at < len(left) or not left["logit"][at] > -np.inf:
            return -1
        return int(left["id"][at])

    def probabilities(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give the tokens among which the last choice was made, and how likely each was."""
        return self._left()["id"].copy(), self._weights / self._weights.sum()

    def _left(self) -> NDArray[np.void]:
        """View what is left; native samplers may move the start."""
        start = (self._native.data - self._start) // CANDIDATE.itemsize
        return self._array[start : start + self._native.size]

    def _reset(self, size: int) -> None:
        array = self._native
        array.data, array.size, array.selected, array.sorted = self._start, size, -1, False


def _within(row: Row, cut: Cut) -> NDArray[np.intp] | None:
    """Find the tokens of the first margin with enough of them, if they are few."""
    best = row.max()
    if not best > -np.inf:
        return None
    for margin in cut.margins:
        ids: NDArray[np.intp] = (row >= best - np.float32(margin)).nonzero()[0]
        if len(ids) > len(row) // 4:
            return None
        if len(ids) >= cut.num_needed:
            return ids
    return None
