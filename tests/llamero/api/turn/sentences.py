"""Texts that a grammar allows, at random."""

import random
from math import inf

from inference.text.grammar import read_grammar
from inference.text.grammar.nodes import Chars, Choice, Node, Repeat, Rule, Sequence, Text

_FEW = 3
_DEEP = 30


class Sentences:
    """Makes texts that follow one grammar."""

    def __init__(self, grammar: str, seed: int) -> None:
        self._rules = read_grammar(grammar)
        self._random = random.Random(seed)
        self._shortest = dict.fromkeys(self._rules, inf)
        while self._shortest != (found := {n: self._cost(r) for n, r in self._rules.items()}):
            self._shortest = found

    def make(self) -> str:
        """Make one."""
        return self._write(self._rules["root"], 0)

    def _write(self, node: Node, depth: int) -> str:
        is_deep = depth > _DEEP
        match node:
            case Text(text):
                return text
            case Rule(name):
                return self._write(self._rules[name], depth + 1)
            case Sequence(parts):
                return "".join(self._write(part, depth) for part in parts)
            case Choice(options):
                option = self._random.choice(options)
                return self._write(min(options, key=self._cost) if is_deep else option, depth)
            case Repeat(part, least, most):
                num_more = 0 if is_deep else self._random.randint(0, _FEW)
                count = least + (num_more if most is None else min(num_more, most - least))
                return "".join(self._write(part, depth) for _ in range(count))
            case Chars(ranges):
                low, high = self._random.choice(ranges)
                return chr(self._random.randint(low, min(high, low + 90)))
        raise ValueError(node)

    def _cost(self, node: Node) -> float:
        """Give how far the end of a node is at least."""
        match node:
            case Rule(name):
                return 1 + self._shortest[name]
            case Sequence(parts):
                return sum(map(self._cost, parts))
            case Choice(options):
                return min(map(self._cost, options))
            case Repeat(part, least, _):
                return least * self._cost(part) if least else 0
        return 1
