"""Arrays without equal items: of values that are listed.

As long as the sets of values that may have come before are few, values come in any order; else in
the order in which they are listed.
"""

from math import comb

from inference.text.json_schema.gbnf import BLANK, Grammar
from inference.text.json_schema.refusal import Unsatisfiable
from inference.text.json_schema.tries import any_beginning

_MAX_SETS = 256
_COMMA = f'"," {BLANK}'


def distinct_items(
    grammar: Grammar, texts: list[str], least: int, most: int | None, pointer: str
) -> str:
    """Give the body of an array of from least to most of these texts; raises Unsatisfiable."""
    if least > len(texts):
        raise Unsatisfiable(f"{pointer}/minItems", "is above the number of different values")
    most = len(texts) if most is None else min(most, len(texts))
    num_sets = sum(comb(len(texts), size) for size in range(most))
    is_free = len(texts) <= _MAX_SETS and num_sets <= _MAX_SETS
    return _Writer(grammar, texts, least, most, is_free=is_free).rule(frozenset(), 0)


class _Writer:
    def __init__(
        self, grammar: Grammar, texts: list[str], least: int, most: int, *, is_free: bool
    ) -> None:
        self._grammar, self._texts = grammar, texts
        self._least, self._most, self._is_free = least, most, is_free
        self._rules: dict[tuple[frozenset[int], int], str] = {}

    def rule(self, closed: frozenset[int], count: int) -> str:
        """Give what may follow so many values, of which those that may not come are closed."""
        key = (closed, count)
        if key not in self._rules:
            self._grammar.spend()
            tails = {
                self._texts[index]: self._after(closed, index, count)
                for index in self._next(closed, count)
            }
            options = ['""'] if count >= self._least else []
            if tails:
                comma = f"{_COMMA} " if count else ""
                options.append(f"{comma}{any_beginning(self._grammar, tails)}")
            self._rules[key] = self._grammar.define(" | ".join(options))
        return self._rules[key]

    def _next(self, closed: frozenset[int], count: int) -> list[int]:
        """Give the values that may come: enough others must be left after them."""
        if count == self._most:
            return []
        left = [index for index in range(len(self._texts)) if index not in closed]
        if self._is_free:
            return left
        return left[: len(left) - max(self._least - count - 1, 0)]

    def _after(self, closed: frozenset[int], index: int, count: int) -> str:
        taken = {index} if self._is_free else set(range(index + 1))
        return self.rule(closed | taken, count + 1)
