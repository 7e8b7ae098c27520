"""Arrays without equal items: of values that are listed.

As long as the sets of values that may have come before are few, values come in any order; else in
the order in which they are listed.
"""

import json
from math import comb

from inference.text.grammar.writer import literal
from inference.text.json_schema.gbnf import COMMA, Grammar
from inference.text.json_schema.keywords import value_key
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.tries import any_beginning

_MAX_SETS = 256
_MAX_RULES = 1500


def without_equals(texts: list[str]) -> list[str]:
    """Give one text of each value: 1 and 1.0 are equal, and so are objects in another order."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(value_key(json.loads(text)), text)
    return list(found.values())


def distinct_items(
    grammar: Grammar, texts: list[str], least: int, most: int | None, pointer: str
) -> str:
    """Give the body of an array of from least to most of these texts; raises Refusal."""
    if least > len(texts):
        raise Unsatisfiable(f"{pointer}/minItems", "is above the number of different values")
    most = len(texts) if most is None else min(most, len(texts))
    num_sets = sum(comb(len(texts), size) for size in range(most)) if len(texts) < _MAX_SETS else 0
    if 0 < num_sets <= _MAX_SETS:
        return _AnyOrder(grammar, texts, least, most).rule(frozenset())
    return _in_order(grammar, texts, least, most, f"{pointer}/uniqueItems")


class _AnyOrder:
    """One rule for each set of values that may have come."""

    def __init__(self, grammar: Grammar, texts: list[str], least: int, most: int) -> None:
        self._grammar, self._texts = grammar, texts
        self._least, self._most = least, most
        self._rules: dict[frozenset[str], str] = {}

    def rule(self, taken: frozenset[str]) -> str:
        """Give what may follow these values."""
        if taken not in self._rules:
            self._grammar.spend()
            options = ['""'] if len(taken) >= self._least else []
            if len(taken) < self._most:
                left = [text for text in self._texts if text not in taken]
                tails = {text: self.rule(taken | {text}) for text in left}
                comma = f"{COMMA} " if taken else ""
                options.append(f"{comma}{any_beginning(self._grammar, tails)}")
            self._rules[taken] = self._grammar.define(" | ".join(options))
        return self._rules[taken]


def _in_order(grammar: Grammar, texts: list[str], least: int, most: int, place: str) -> str:
    """Write from the last value to the first: each is there or left out, and counted."""
    highest = most if most < len(texts) else max(least, 1)
    if len(texts) * (highest + 1) > _MAX_RULES:
        raise Refusal(place, "is not supported for so many values and items")
    rules = ['""' if count >= least else None for count in range(highest + 1)]
    for text in reversed(texts):
        grammar.spend(highest + 1)
        before: list[str | None] = []
        for count in range(highest + 1):
            options = [rules[count]] if rules[count] else []
            after = rules[min(count + 1, highest)]
            if after and (count < highest or most == len(texts)):
                comma = f"{COMMA} " if count else ""
                options.append(f"{comma}{literal(text)} {after}")
            before.append(grammar.define(" | ".join(filter(None, options))) if options else None)
        rules = before
    return rules[0] or '""'
