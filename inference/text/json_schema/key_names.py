"""``propertyNames``: which names properties may have."""

from collections.abc import Iterable
from typing import Any

from inference.text.grammar.automaton import Automaton, Budget
from inference.text.grammar.checks import ROOT
from inference.text.grammar.regex import BadPattern, parse_exact_pattern
from inference.text.json_schema.gbnf import Grammar
from inference.text.json_schema.keywords import EXCEPT, TYPES, read_bounds, read_types, value_key
from inference.text.json_schema.refusal import Refusal
from inference.text.json_schema.strings import string_item
from inference.text.json_schema.values import read_values

_STEPS = 100_000


def finds(pattern: str, name: str, pointer: str) -> bool:
    """Tell whether a pattern is found in a name, exactly as ECMA's language has it."""
    try:
        search = Automaton({ROOT: parse_exact_pattern(pattern)}, lambda _: None)
    except BadPattern as error:
        raise Refusal(pointer, f"has a pattern that {error}") from None
    budget = Budget(_STEPS)
    return search.walk(search.start(budget), name.encode(), budget).is_end


class KeyNames:
    """The names that one of some plain schemas allows."""

    def __init__(self, options: list[dict[str, Any]], pointer: str) -> None:
        self._pointer = pointer
        self._options = [one for one in options if _allows_texts(one, pointer)]
        if any("format" in one for one in self._options):
            raise Refusal(f"{pointer}/format", "is not supported for names")

    def allow(self, name: str) -> bool:
        """Tell whether a property may have a name."""
        return any(self._allows(option, name) for option in self._options)

    def listed(self) -> list[str] | None:
        """Give all names, if they are listed."""
        if not all(one.keys() & {"enum", "const"} for one in self._options):
            return None
        values = [one for part in self._options for one in read_values(part, self._pointer)]
        return [one for one in dict.fromkeys(filter(_is_text, values)) if self.allow(one)]

    def item(self, grammar: Grammar, declared: Iterable[str]) -> str | None:
        """Give an item that matches keys that are not declared; None where that is hard to say."""
        if len(self._options) != 1 or any(self.allow(name) for name in declared):
            return None
        return string_item(grammar, self._options[0], self._pointer)

    def _allows(self, option: dict[str, Any], name: str) -> bool:
        if option.keys() & {"enum", "const"} and name not in read_values(option, self._pointer):
            return False
        least, most = read_bounds(option, "minLength", "maxLength", self._pointer)
        if len(name) < least or (most is not None and len(name) > most):
            return False
        if value_key(name) in {value_key(value) for value in option.get(EXCEPT, ())}:
            return False
        pattern = option.get("pattern", "")
        if not isinstance(pattern, str):
            raise Refusal(f"{self._pointer}/pattern", "must be a string")
        return not pattern or finds(pattern, name, f"{self._pointer}/pattern")


def _allows_texts(schema: dict[str, Any], pointer: str) -> bool:
    return "string" in (read_types(schema, pointer) if "type" in schema else TYPES)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
