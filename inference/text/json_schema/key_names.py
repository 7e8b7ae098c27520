"""``propertyNames``: which names properties may have."""

from collections.abc import Iterable
from typing import Any

from inference.text.json_schema.gbnf import Grammar
from inference.text.json_schema.key_patterns import finds, open_search
from inference.text.json_schema.keywords import EXCEPT, TYPES, read_bounds, read_types, value_key
from inference.text.json_schema.refusal import Refusal
from inference.text.json_schema.strings import string_item
from inference.text.json_schema.values import read_values


class KeyNames:
    """The names that one of some plain schemas allows."""

    def __init__(self, options: list[dict[str, Any]], pointer: str) -> None:
        self._pointer = pointer
        self._options = [one for one in options if _allows_texts(one, pointer)]
        if any("format" in one for one in self._options):
            raise Refusal(f"{pointer}/format", "is not supported for names")
        self._searches = [
            open_search(one.get("pattern", ""), f"{pointer}/pattern") for one in self._options
        ]

    def allow(self, name: str) -> bool:
        """Tell whether a property may have a name."""
        options = zip(self._options, self._searches, strict=True)
        return any(self._allows(option, name) and finds(search, name) for option, search in options)

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
        return value_key(name) not in {value_key(value) for value in option.get(EXCEPT, ())}


def _allows_texts(schema: dict[str, Any], pointer: str) -> bool:
    return "string" in (read_types(schema, pointer) if "type" in schema else TYPES)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
