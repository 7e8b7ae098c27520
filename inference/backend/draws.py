"""Which random number decides a token, and which token does it decide on?

The numbers of a sequence depend on its seed and on the position alone. A generator that moves on
with every draw would give other ones after a token that a grammar refused, or that an earlier
attempt has drawn and told: a resumed generation goes on as if nothing had happened.
"""

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_NUM_BITS = 48
_BLOCK = 256
_NUM_PURPOSES = 4
TOKEN, AGAIN, CHANCE = range(3)
"""What a number is for: choosing a token, choosing once more after a refusal (with a number that
knows nothing of the first), or whether a sampler that acts by chance does."""


class Draws:
    """Numbers from 0 to below 1. The same seed gives the same ones, no seed unknown ones."""

    def __init__(self, seed: int | None) -> None:
        self._start = _mix(secrets.randbits(64) if seed is None else seed + _GAMMA)

    def at(self, position: int, purpose: int = TOKEN) -> float:
        """Give the number for one purpose at one position."""
        mixed = _mix(self._start + (_NUM_PURPOSES * position + purpose + 1) * _GAMMA)
        return (mixed >> (64 - _NUM_BITS)) / (1 << _NUM_BITS)


def pick(weights: NDArray[np.float32], draw: float) -> int:
    """Choose an index with a chance in proportion to its weight; -1 where nothing weighs.

    Of a whole vocabulary the blocks are summed first: adding up one by one is the slow part.
    """
    if len(weights) <= 4 * _BLOCK:
        return _pick_one_by_one(weights, draw)
    num_blocks = len(weights) // _BLOCK
    body, tail = weights[: num_blocks * _BLOCK], weights[num_blocks * _BLOCK :]
    sums: NDArray[Any] = np.append(body.reshape(num_blocks, _BLOCK).sum(axis=1), tail.sum())
    block = _pick_one_by_one(sums, draw)
    if block < 0:
        return -1
    # What is left of the draw within the block is as even as the draw was.
    total, before = sums.sum(dtype=np.float64), sums[:block].sum(dtype=np.float64)
    rest = (draw * total - before) / float(sums[block])
    inner = weights[block * _BLOCK : (block + 1) * _BLOCK]
    return block * _BLOCK + _pick_one_by_one(inner, min(max(rest, 0.0), 1.0))


def _pick_one_by_one(weights: NDArray[np.float32], draw: float) -> int:
    ends = weights.cumsum(dtype=np.float64)
    total = float(ends[-1]) if len(ends) else 0.0
    if not total > 0:
        return -1
    at = int(ends.searchsorted(draw * total, side="right"))
    # Rounding may carry a draw just below 1 past the end, or into what weighs nothing there.
    return at if at < len(weights) else int(np.flatnonzero(weights)[-1])


def _mix(value: int) -> int:
    """Scramble 64 bits (the finalizer of the splitmix64 generator)."""
    value &= _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
