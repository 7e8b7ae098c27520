"""Which tokens of a vocabulary may come next, all of them judged at once?

The bytes of all tokens form a tree, and the tree is kept level by level: a grammar walks all
tokens together, one byte each, as a few array operations per level, instead of one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference.text.grammar import Automaton, State
from inference.text.grammar.automaton import Budget

_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class _Level:
    """The nodes of one depth: each one's parent in the level above, and its byte.

    ``tokens`` are the tokens that end at this depth, ``ends`` the nodes where they do.
    """

    parents: NDArray[np.int32]
    bytes: NDArray[np.uint8]
    tokens: NDArray[np.int32]
    ends: NDArray[np.int32]


class TokenTrie:
    """The tokens of a vocabulary that spell something, as a tree of bytes."""

    def __init__(self, spellings: Sequence[bytes]) -> None:
        self.num_vocab = len(spellings)
        self._levels = _build_levels(spellings)

    def allowed(self, automaton: Automaton, state: State, budget: Budget) -> NDArray[np.bool_]:
        """Tell of each token whether it may follow."""
        steps = _Steps(automaton, state, budget)
        classes = np.frombuffer(automaton.byte_classes, np.uint8)
        allowed = np.zeros(self.num_vocab, np.bool_)
        places = np.ones(1, np.int32)
        for level in self._levels:
            places = steps.take(places[level.parents], classes[level.bytes])
            if not places.any():
                break
            allowed[level.tokens] = places[level.ends] > 0
        return allowed


class _Steps:
    """A table of the steps between the states that one walk meets; 0 is where no step leads."""

    def __init__(self, automaton: Automaton, start: State, budget: Budget) -> None:
        self._automaton = automaton
        self._num_classes = automaton.num_classes
        self._states = [automaton.dead, start]
        self._numbers = {automaton.dead: 0, start: 1}
        self._table = np.full(64 * self._num_classes, _UNKNOWN, np.int32)
        self._table[: self._num_classes] = 0
        self._budget = budget

    def take(self, places: NDArray[np.int32], classes: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Give where each place leads with a byte of its class."""
        keys = places * np.int32(self._num_classes) + classes
        found = self._table.take(keys)
        unknown = keys[found == _UNKNOWN]
        if not unknown.size:
            return found
        is_asked = np.zeros(len(self._table), np.bool_)
        is_asked[unknown] = True
        for key in np.flatnonzero(is_asked).tolist():
            number = self._resolve(key)
            self._table[key] = number
        return self._table.take(keys)

    def _resolve(self, key: int) -> int:
        place, kind = divmod(key, self._num_classes)
        self._budget.spend()
        state = self._automaton.step(self._states[place], kind, self._budget)
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            if len(self._states) * self._num_classes > len(self._table):
                fresh = np.full(len(self._table), _UNKNOWN, np.int32)
                self._table = np.concatenate((self._table, fresh))
        return number


def _build_levels(spellings: Sequence[bytes]) -> list[_Level]:
    """Sort the tokens, then find at each depth where the beginnings of neighbours differ."""
    tokens = np.array([at for at, data in enumerate(spellings) if data], np.int32)
    order = sorted(tokens.tolist(), key=spellings.__getitem__)
    tokens = np.array(order, np.int32)
    lengths = np.array([len(spellings[token]) for token in order], np.int64)
    flat = np.frombuffer(b"".join(spellings[token] for token in order), np.uint8)
    starts = np.cumsum(lengths) - lengths
    rows = np.arange(len(order))
    nodes = np.zeros(len(order), np.int32)
    levels = []
    for depth in range(int(lengths.max(initial=0))):
        rows = rows[lengths[rows] > depth]
        parents, data = nodes[rows], flat[starts[rows] + depth]
        is_new = np.ones(len(rows), np.bool_)
        is_new[1:] = (parents[1:] != parents[:-1]) | (data[1:] != data[:-1])
        nodes[rows] = np.cumsum(is_new) - 1
        ending = rows[lengths[rows] == depth + 1]
        levels.append(_Level(parents[is_new], data[is_new], tokens[ending], nodes[ending]))
    return levels
