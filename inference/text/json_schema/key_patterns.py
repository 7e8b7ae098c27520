"""``patternProperties``: which names match which pattern, and which schemas hold for them."""

from collections.abc import Iterable
from typing import Any

from inference.protocol.errors import EngineError
from inference.text.grammar.automaton import Automaton, Budget
from inference.text.grammar.checks import ROOT
from inference.text.grammar.regex import BadPattern, parse_exact_pattern
from inference.text.json_schema.gbnf import Grammar
from inference.text.json_schema.refusal import Refusal

_STEPS = 100_000
_OPENING_COST = 16


class KeyPatterns:
    """The patterns of one schema, with the schema for the values of each."""

    def __init__(self, grammar: Grammar, schemas: Any, pointer: str) -> None:
        if not isinstance(schemas, dict):
            raise Refusal(f"{pointer}/patternProperties", "must be an object")
        self.schemas: dict[str, Any] = schemas
        self._grammar = grammar
        self._place = f"{pointer}/patternProperties"
        self._searches = {pattern: self._open(pattern) for pattern in schemas}

    def __bool__(self) -> bool:
        return bool(self.schemas)

    def match(self, name: str) -> list[str]:
        """Give the patterns that are found in a name."""
        self._grammar.spend(len(self._searches))
        return [pattern for pattern, search in self._searches.items() if finds(search, name)]

    def narrow(self, name: str, schema: Any) -> Any:
        """Give the schema of a declared name: its own, and those of the patterns it matches."""
        matched = [self.schemas[pattern] for pattern in self.match(name)]
        return {"allOf": [schema, *matched]} if matched else schema

    def only_one_for_new_keys(self, declared: Iterable[str]) -> str | None:
        """Give the pattern whose keys need to follow its own schema alone, if there is such."""
        names = list(declared)
        if len(self.schemas) > 1 and not names:
            raise Refusal(self._place, "has several patterns alone, which is not supported")
        if len(self.schemas) > 1 or any(self.match(name) for name in names):
            return None
        return next(iter(self.schemas))

    def _open(self, pattern: str) -> Automaton:
        self._grammar.spend(_OPENING_COST)
        return open_search(pattern, self._place)


def open_search(pattern: Any, place: str) -> Automaton:
    """Compile a pattern that is looked for in names, exactly as ECMA's language has it."""
    if not isinstance(pattern, str):
        raise Refusal(place, "must be a string")
    try:
        return Automaton({ROOT: parse_exact_pattern(pattern)}, lambda _: None)
    except BadPattern as error:
        raise Refusal(place, f"has a pattern that {error}") from None
    except EngineError:
        raise Refusal(place, "has a pattern that is too large") from None


def finds(search: Automaton, name: str) -> bool:
    """Tell whether a text holds what is looked for; raises Refusal where that takes too long."""
    budget = Budget(_STEPS)
    try:
        return search.walk(search.start(budget), name.encode(), budget).is_end
    except EngineError:
        raise Refusal("#", "has a pattern that takes too long to look for") from None
