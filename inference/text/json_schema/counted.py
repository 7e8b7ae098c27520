"""Texts of patterns whose length is bounded too, or that several patterns must match.

The patterns become one table of states, of what each of them has read; each state and each number
of characters so far become a rule. A state that leads to itself alone is a repetition.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from inference.text.grammar import nodes
from inference.text.grammar.nodes import Node, Ranges
from inference.text.json_schema.gbnf import Grammar, string_chars

_MAX_STATES = 128
_MAX_RULES = 800
# For each pattern, the places in it where a text may be.
_State: TypeAlias = tuple[frozenset[int], ...]


def counted_item(
    grammar: Grammar, patterns: Sequence[Node], least: int, most: int | None
) -> str | None:
    """Give an item for what all patterns match, as it is written inside a JSON string.

    "" where there is no such text; None where it takes too many rules.
    """
    steps = _find_steps(grammar, [_Places(pattern) for pattern in patterns])
    return _Writer(grammar, *steps, least, most).write() if steps else None


class _Places:
    """The places in one pattern, and the characters that lead from one to another."""

    def __init__(self, pattern: Node) -> None:
        self.edges: list[list[tuple[Ranges, int]]] = []
        self._free: list[list[int]] = []
        start = self._new()
        self.end = self._add(pattern, start)
        self.start = self.settle({start})

    def settle(self, places: set[int]) -> frozenset[int]:
        """Add the places that are reached without a character."""
        waiting = list(places)
        while waiting:
            new = set(self._free[waiting.pop()]) - places
            places |= new
            waiting += new
        return frozenset(places)

    def _new(self) -> int:
        self.edges.append([])
        self._free.append([])
        return len(self.edges) - 1

    def _add(self, node: Node, at: int) -> int:
        """Add a part that begins at a place; give the place where it ends."""
        match node:
            case nodes.Chars(ranges):
                self.edges[at].append((ranges, self._new()))
                return self.edges[at][-1][1]
            case nodes.Sequence(parts):
                for part in parts:
                    at = self._add(part, at)
                return at
            case nodes.Choice(options):
                return self._join([self._add(option, at) for option in options])
            case nodes.Repeat(part, least, most):
                return self._repeat(part, at, least, most)
        raise ValueError(node)

    def _repeat(self, part: Node, at: int, least: int, most: int | None) -> int:
        for _ in range(least):
            at = self._add(part, at)
        if most is None:
            # A place of its own, as what comes back to it may have other ways to go.
            loop = self._join([at])
            self._free[self._add(part, loop)].append(loop)
            return self._join([loop])
        ends = [at]
        for _ in range(most - least):
            ends.append(self._add(part, ends[-1]))
        return self._join(ends)

    def _join(self, ends: list[int]) -> int:
        place = self._new()
        for end in ends:
            self._free[end].append(place)
        return place


_Steps: TypeAlias = dict[_State, dict[_State, Ranges]]


def _find_steps(
    grammar: Grammar, patterns: Sequence[_Places]
) -> tuple[_Steps, _State, set[_State]] | None:
    """Give all states with the steps between them, the first, and those where a text may end."""
    start = tuple(pattern.start for pattern in patterns)
    steps: _Steps = {}
    waiting = [start]
    while waiting:
        state = waiting.pop()
        if state in steps:
            continue
        if len(steps) >= _MAX_STATES:
            return None
        grammar.spend(1 + sum(map(len, state)) // 16)
        steps[state] = _steps_from(state, patterns)
        waiting += steps[state]
    ends = {
        state
        for state in steps
        if all(one.end in at for one, at in zip(patterns, state, strict=True))
    }
    return steps, start, ends


def _steps_from(state: _State, patterns: Sequence[_Places]) -> dict[_State, Ranges]:
    """Give where each character leads, by where that is."""
    edges = [
        [edge for place in at for edge in one.edges[place]]
        for one, at in zip(patterns, state, strict=True)
    ]
    all_ranges = [pair for part in edges for ranges, _ in part for pair in ranges]
    borders = sorted({low for low, _ in all_ranges} | {high + 1 for _, high in all_ranges})
    found: dict[_State, list[tuple[int, int]]] = {}
    for low, after in pairwise(borders):
        targets = [{to for ranges, to in part if _holds(ranges, low)} for part in edges]
        if all(targets):
            pairs = zip(patterns, targets, strict=True)
            target = tuple(one.settle(places) for one, places in pairs)
            found.setdefault(target, []).append((low, after - 1))
    return {target: nodes.normalize(tuple(ranges)) for target, ranges in found.items()}


def _holds(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


class _Writer:
    """Writes the rules of states, by how many characters there are already."""

    def __init__(
        self,
        grammar: Grammar,
        steps: Mapping[_State, Mapping[_State, Ranges]],
        start: _State,
        ends: set[_State],
        least: int,
        most: int | None,
    ) -> None:
        self._grammar, self._steps, self._start, self._ends = grammar, steps, start, ends
        self._least, self._most = least, most
        self._num_left = self._count_left()

    def write(self) -> str | None:
        if self._start not in self._num_left:
            return ""
        # From this number of characters on, there is nothing to count.
        top = self._least if self._most is None else self._most
        layers = [{self._start}]
        while len(layers) <= top and layers[-1]:
            layers.append(self._next_layer(layers[-1], len(layers)))
            if sum(map(len, layers)) > _MAX_RULES:
                return None
        rules = self._write_uncounted(layers.pop()) if self._most is None else {}
        for count in range(len(layers) - 1, -1, -1):
            rules = self._write_layer(layers[count], count, rules)
        return rules.get(self._start, "")

    def _count_left(self) -> dict[_State, int]:
        """Give how many characters are at least left from each state that leads to an end."""
        before: dict[_State, list[_State]] = {}
        for state, targets in self._steps.items():
            for target in targets:
                before.setdefault(target, []).append(state)
        found = dict.fromkeys(self._ends, 0)
        waiting = list(found)
        for state in waiting:
            for one in before.get(state, ()):
                if one not in found:
                    found[one] = found[state] + 1
                    waiting.append(one)
        return found

    def _next_layer(self, layer: set[_State], count: int) -> set[_State]:
        room = None if self._most is None else self._most - count
        return {
            target
            for state in layer
            if not self._is_loop(state)
            for target in self._steps[state]
            if target in self._num_left and (room is None or self._num_left[target] <= room)
        }

    def _is_loop(self, state: _State) -> bool:
        return state in self._ends and self._steps[state].keys() == {state}

    def _write_uncounted(self, states: set[_State]) -> dict[_State, str]:
        """Write the rules of states where only the end is to be reached."""
        waiting, names = list(states), {}
        while waiting:
            state = waiting.pop()
            if state not in names:
                names[state] = self._grammar.reserve()
                waiting += self._steps[state].keys() & self._num_left.keys()
        for state, name in names.items():
            ends = ['""'] if state in self._ends else []
            self._grammar.fill(name, " | ".join([*self._options(state, names), *ends]))
        return {state: names[state] for state in states}

    def _write_layer(
        self, layer: set[_State], count: int, after: Mapping[_State, str]
    ) -> dict[_State, str]:
        rules = {}
        for state in layer:
            self._grammar.spend()
            if self._is_loop(state):
                (ranges,) = self._steps[state].values()
                room = None if self._most is None else self._most - count
                least = max(0, self._least - count)
                rules[state] = self._grammar.repeat(string_chars(ranges), least, room)
                continue
            options = self._options(state, after)
            if state in self._ends and count >= self._least:
                options.append('""')
            if options:
                rules[state] = self._grammar.define(" | ".join(options))
        return rules

    def _options(self, state: _State, after: Mapping[_State, str]) -> list[str]:
        return [
            f"{self._grammar.define(string_chars(ranges))} {after[target]}"
            for target, ranges in self._steps[state].items()
            if target in after
        ]
