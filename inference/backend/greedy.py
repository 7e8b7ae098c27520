"""How is a token chosen without llama.cpp, where numpy is enough?"""

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Row
from inference.backend.draws import Draws, pick


class BestToken:
    """Chooses the most likely token."""

    def __init__(self) -> None:
        self._token = -1

    def choose(self, row: Row, position: int, purpose: int) -> int:
        """Choose the first of the most likely tokens; -1 where none is possible."""
        token = int(row.argmax())
        self._token = token if row[token] > -np.inf else -1
        return self._token

    def accept(self, token: int) -> None:
        """Remember nothing."""

    def probabilities(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give the one token that is left."""
        return np.array([self._token], np.int32), np.ones(1, np.float32)

    def close(self) -> None:
        """Do nothing: there is no native memory."""


class WeighedTokens:
    """Chooses any token of the vocabulary by its probability at a temperature."""

    def __init__(self, temperature: float, seed: int | None) -> None:
        self._scale = np.float32(1 / temperature)
        self._draws = Draws(seed)
        self._weights: NDArray[np.float32] = np.empty(0, np.float32)

    def choose(self, row: Row, position: int, purpose: int) -> int:
        """Choose a token; -1 where none is possible."""
        best = row.max()
        if not best > -np.inf:
            return -1
        weights = row - best
        weights *= self._scale
        self._weights = np.exp(weights, out=weights)
        return pick(weights, self._draws.at(position, purpose))

    def accept(self, token: int) -> None:
        """Remember nothing."""

    def probabilities(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give all tokens."""
        ids = np.arange(len(self._weights), dtype=np.int32)
        return ids, self._weights / self._weights.sum()

    def close(self) -> None:
        """Do nothing: there is no native memory."""
