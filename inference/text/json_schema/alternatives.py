"""A schema as alternatives that combine nothing: every word that joins, splits or turns round
schemas is worked out, so that what is left can be written word by word.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from inference.text.json_schema.apart import may_overlap
from inference.text.json_schema.gbnf import Grammar, json_text
from inference.text.json_schema.keywords import (
    APART,
    COMBINING,
    EXCEPT,
    meaning,
    read_names,
    read_object,
)
from inference.text.json_schema.merge import excluded_values, merge
from inference.text.json_schema.negation import is_negated_in_part, negate
from inference.text.json_schema.references import join, resolve
from inference.text.json_schema.refusal import Refusal, Unsatisfiable

MAX_DEPTH = 64
_CHARS_PER_COST = 64
Plain = dict[str, Any]
Placed = tuple[Any, str]


class Alternatives:
    """Finds the alternatives of any part of one schema; pays for it from the grammar's purse."""

    def __init__(self, root: Any, grammar: Grammar) -> None:
        self._root, self._grammar = root, grammar
        self._depth = 0
        self._open: list[str] = []
        self._num_negated = 0
        # How often what was found allows less than the schema does.
        self._num_narrowed = 0

    @contextmanager
    def level(self, pointer: str) -> Iterator[None]:
        """Count how deep what is looked at lies, in the schema and by reference."""
        self._grammar.spend()
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise Refusal(pointer, f"nests or refers deeper than {MAX_DEPTH} levels")
            yield
        finally:
            self._depth -= 1

    def words(self, schema: Any, pointer: str) -> dict[str, Any]:
        """Give what constrains of a schema; raises Unsatisfiable for false."""
        if schema is False:
            raise Unsatisfiable(pointer, "allows no value")
        if schema is not True and not isinstance(schema, dict):
            raise Refusal(pointer, "must be a schema: an object, true or false")
        return {} if schema is True else meaning(schema, pointer)

    def expand(self, schema: Any, pointer: str) -> list[Plain]:
        """Give the alternatives of a schema; raises Unsatisfiable where there are none."""
        with self.level(pointer):
            return self.combine(self.words(schema, pointer), pointer)

    def combine(self, words: Mapping[str, Any], pointer: str) -> list[Plain]:
        """Give the alternatives of a schema's words."""
        num_negated = self._num_negated
        own = {name: value for name, value in words.items() if name not in COMBINING}
        if "contains" in own:
            own.setdefault("minContains", 1)
        found = [own]
        for options in self._groups(words, pointer):
            found = self._merge_all(found, options, pointer)
        for name, others in _UNEVALUATED.items():
            if name in words:
                if self._num_negated > num_negated:
                    raise Refusal(f"{pointer}/{name}", "is not supported beside not, or if")
                self._num_narrowed += len(found) > 1 or "contains" in found[0]
                found = [{others: words[name], **one} for one in found]
        return found

    def possible(self, schema: Any, pointer: str) -> list[Plain]:
        """Give the alternatives of a schema, none where no value fits."""
        try:
            return self.expand(schema, pointer)
        except Unsatisfiable:
            return []

    def options(self, words: Mapping[str, Any], name: str, pointer: str) -> list[Placed]:
        """Give the schemas of a list with their places."""
        options = words.get(name, [])
        if not isinstance(options, list) or (name in words and not options):
            raise Refusal(f"{pointer}/{name}", "must be a list of schemas")
        return [(option, join(pointer, name, i)) for i, option in enumerate(options)]

    def check_apart(self, option: Plain, pointer: str) -> None:
        """Refuse what is written for one alternative of a ``oneOf`` and might fit another."""
        num_narrowed = self._num_narrowed
        for other in option.get(APART, []):
            self._grammar.spend()
            is_apart = not may_overlap(option, other, lambda part: self.possible(part, pointer))
            if not is_apart or self._num_narrowed > num_narrowed:
                raise Refusal(
                    f"{pointer}/oneOf",
                    "has alternatives that one value might fit both. Tell them apart by a "
                    "required property with a const in each, or use anyOf",
                )

    def spend_on(self, *read: Mapping[str, Any]) -> None:
        """Pay for reading schemas as a whole."""
        read = tuple({name: part[name] for name in part if name != APART} for part in read)
        self._grammar.spend(2 + sum(map(len, map(json_text, read))) // _CHARS_PER_COST)

    def _groups(self, words: Mapping[str, Any], pointer: str) -> Iterator[list[Plain]]:
        """Give lists of alternatives, of each of which one must hold."""
        if "$ref" in words:
            yield self._referred(words["$ref"], pointer)
        for part in self.options(words, "allOf", pointer):
            yield self.possible(*part)
        if "anyOf" in words:
            yield self._any_of(self.options(words, "anyOf", pointer))
        if "not" in words:
            yield self._negated(words["not"], f"{pointer}/not")
        if "if" in words and words.keys() & {"then", "else"}:
            yield self._conditional(words, pointer)
        yield from self._dependent(words, pointer)
        if "oneOf" in words:
            yield self._set_apart(self.options(words, "oneOf", pointer), pointer)

    def _any_of(self, options: list[Placed]) -> list[Plain]:
        """Give the alternatives of several schemas, equal ones once."""
        found = [one for option in options for one in self.possible(*option)]
        self.spend_on(*found)
        return list({json_text(one): one for one in found}.values())

    def _referred(self, reference: Any, pointer: str) -> list[Plain]:
        target = resolve(self._root, reference, pointer)
        if reference in self._open:
            raise Refusal(reference, "refers to itself without end")
        self._open.append(reference)
        try:
            return self.possible(target, reference)
        finally:
            self._open.pop()

    def _negated(self, schema: Any, pointer: str) -> list[Plain]:
        values = excluded_values(schema)
        if values is not None:
            return [{EXCEPT: values}]
        self._num_negated += 1
        self._num_narrowed += is_negated_in_part(schema, pointer)
        return self._any_of(negate(schema, pointer, self._resolve))

    def _conditional(self, words: Mapping[str, Any], pointer: str) -> list[Plain]:
        """Give ``if`` with ``then``, and the opposite of ``if`` with ``else``."""
        condition = (words["if"], f"{pointer}/if")
        found = []
        for name, options in (
            ("then", self.possible(*condition)),
            ("else", self._negated(*condition)),
        ):
            consequence = self.possible(words.get(name, True), f"{pointer}/{name}")
            try:
                found += self._merge_all(options, consequence, pointer)
            except Unsatisfiable:
                continue
        return found

    def _dependent(self, words: Mapping[str, Any], pointer: str) -> Iterator[list[Plain]]:
        """Give, for each name, objects without it, and those with it and what depends on it."""
        place = f"{pointer}/dependentRequired"
        for name, names in read_object(words, "dependentRequired", pointer).items():
            needed = [name, *read_names(names, join(place, name))]
            yield [_lacking(name), {"required": needed}]
        for name, schema in read_object(words, "dependentSchemas", pointer).items():
            options = self.possible(schema, join(pointer, "dependentSchemas", name))
            having: list[Plain] = []
            if options:
                having = self._merge_all([{"required": [name]}], options, pointer)
            yield [_lacking(name), *having]

    def _set_apart(self, options: list[Placed], pointer: str) -> list[Plain]:
        """Give the alternatives of a ``oneOf``; each names those that may not allow the same."""
        num_narrowed = self._num_narrowed
        found = [(at, one) for at, option in enumerate(options) for one in self.possible(*option)]
        if len(options) > 1 and self._num_narrowed > num_narrowed:
            problem = "has alternatives whose not, if or unevaluated words cannot be told apart"
            raise Refusal(f"{pointer}/oneOf", f"{problem}. Use anyOf")
        return [
            one | {APART: [*one.get(APART, []), *(other for i, other in found if i != at)]}
            for at, one in found
        ]

    def _merge_all(self, first: list[Plain], second: list[Plain], pointer: str) -> list[Plain]:
        merged, last = [], Unsatisfiable(pointer, "allows no value")
        for one in first:
            for other in second:
                self.spend_on(one, other)
                try:
                    merged.append(merge(one, other, pointer))
                except Unsatisfiable as error:
                    last = error
        if not merged:
            raise last
        return merged

    def _resolve(self, reference: Any, pointer: str) -> Any:
        return resolve(self._root, reference, pointer)


def _lacking(name: str) -> Plain:
    return {"properties": {name: False}}


# What holds for the rest where nothing else does is all that these words can mean here.
_UNEVALUATED = {"unevaluatedProperties": "additionalProperties", "unevaluatedItems": "items"}
