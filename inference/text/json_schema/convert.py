"""Turn a schema into a grammar, or say at which place and why that cannot be done.

Every text of the grammar is JSON that the schema allows; not every such JSON is a text of it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar.writer import one_of
from inference.text.json_schema.apart import may_overlap
from inference.text.json_schema.containers import array_item, object_item
from inference.text.json_schema.gbnf import Grammar, json_text
from inference.text.json_schema.keywords import COMBINING, meaning, read_range, read_types
from inference.text.json_schema.merge import APART, merge
from inference.text.json_schema.numbers import integer_item, number_item
from inference.text.json_schema.references import find_loop, join, resolve
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.strings import string_item
from inference.text.json_schema.values import values_item

MAX_BYTES = 64 * 1024
MAX_DEPTH = 64
_CHARS_PER_COST = 64


def schema_to_grammar(schema: Any, *, param: str) -> str:
    """Give the GBNF grammar of a schema; raises EngineError INVALID_GRAMMAR about the param."""
    try:
        grammar = Grammar()
        return grammar.text(Converter(schema, grammar).item())
    except Refusal as refusal:
        raise schema_refused(refusal, param) from None
    except RecursionError:
        raise schema_refused(Refusal("#", "is too complex"), param) from None


def schema_refused(refusal: Refusal, param: str) -> EngineError:
    """Give the error about a schema in a field of a request."""
    message = f"The JSON schema is refused: at '{refusal.pointer[:200]}' it {refusal.problem}."
    if refusal.pointer == "#":
        message = f"The JSON schema is refused: it {refusal.problem}."
    return EngineError(ErrorCode.INVALID_GRAMMAR, message, param=param)


def _check_size(schema: Any) -> None:
    """Refuse what is too deep or too large before anything recursive sees it."""
    level: list[Any] = [[schema]]
    for _ in range(MAX_DEPTH):
        parts = [part.values() if isinstance(part, dict) else part for part in level]
        level = [value for part in parts for value in part if isinstance(value, dict | list)]
        if not level:
            break
    else:
        raise Refusal("#", f"nests deeper than {MAX_DEPTH} levels")
    try:
        size = len(json_text(schema).encode())
    except (UnicodeEncodeError, ValueError):
        raise Refusal("#", "is not valid Unicode") from None
    if size > MAX_BYTES:
        raise Refusal("#", f"is larger than {MAX_BYTES} bytes")


class Converter:
    """Walks one schema. ``convert`` gives an item of the grammar for any part of it."""

    def __init__(self, root: Any, grammar: Grammar) -> None:
        _check_size(root)
        self._root = root
        self._grammar = grammar
        self._depth = 0
        self._references: dict[str, str] = {}
        # Which references a rule may begin with: around these it must not come back to itself.
        self._beginnings: dict[str, set[str]] = {}
        self._begin: set[str] = set()

    def item(self, pointer: str = "#") -> str:
        """Give the item of the part at a pointer; raises Refusal."""
        item = self._refer(pointer, pointer)
        loop = find_loop(self._beginnings)
        if loop is not None:
            names = [ref for ref, name in self._references.items() if name == loop]
            raise Refusal(names[0], "refers to itself without end")
        return item

    def convert(self, schema: Any, pointer: str) -> str:
        """Give the item that matches what a schema allows."""
        self._enter(pointer)
        try:
            return self._convert(schema, pointer)
        finally:
            self._depth -= 1

    def _convert(self, schema: Any, pointer: str) -> str:
        words = self._words(schema, pointer)
        if not words:
            return "value"
        if words.keys() == {"$ref"}:
            return self._refer(words["$ref"], pointer)
        for name in ("anyOf", "oneOf"):
            if words.keys() == {name}:
                options = self._list(words, name, pointer)
                if name == "oneOf":
                    self._check_apart(self._set_apart(options), pointer)
                return self._any(self.convert, options, pointer)
        if words.keys() == {"allOf"} and len(self._list(words, "allOf", pointer)) == 1:
            return self.convert(*self._list(words, "allOf", pointer)[0])
        options = [(option, pointer) for option in self._expand(words, pointer)]
        return self._any(self._plain, options, pointer)

    def _any(
        self, write: Callable[[Any, str], str], options: list[tuple[Any, str]], pointer: str
    ) -> str:
        """Give an item for one of several; those that no value fits fall away."""
        items, last = [], Unsatisfiable(pointer, "allows no value")
        for option, place in options:
            try:
                items.append(write(option, place))
            except Unsatisfiable as error:
                last = error
        if not items:
            raise last
        return items[0] if len(items) == 1 else self._grammar.define(one_of(items))

    def _expand(self, schema: Any, pointer: str) -> list[dict[str, Any]]:
        """Give the alternatives of a schema as schemas that combine nothing at their top."""
        self._enter(pointer)
        try:
            return self._combine(self._words(schema, pointer), pointer)
        finally:
            self._depth -= 1

    def _combine(self, words: dict[str, Any], pointer: str) -> list[dict[str, Any]]:
        groups = []
        if "$ref" in words:
            groups.append([(resolve(self._root, words["$ref"], pointer), words["$ref"])])
        groups += [[part] for part in self._list(words, "allOf", pointer)]
        if "anyOf" in words:
            groups.append(self._list(words, "anyOf", pointer))
        found = [{name: value for name, value in words.items() if name not in COMBINING}]
        for group in groups:
            options = [option for part in group for option in self._possible(*part)]
            found = self._merge_all(found, options, pointer)
        if "oneOf" in words:
            options = self._set_apart(self._list(words, "oneOf", pointer))
            found = self._merge_all(found, options, pointer)
        return found

    def _possible(self, schema: Any, pointer: str) -> list[dict[str, Any]]:
        """Give the alternatives of a schema, none where no value fits."""
        try:
            return self._expand(schema, pointer)
        except Unsatisfiable:
            return []

    def _set_apart(self, options: list[tuple[Any, str]]) -> list[dict[str, Any]]:
        """Give the alternatives of a ``oneOf``; each names those that may not allow the same."""
        found = [(at, one) for at, option in enumerate(options) for one in self._possible(*option)]
        return [
            one | {APART: [*one.get(APART, []), *(other for i, other in found if i != at)]}
            for at, one in found
        ]

    def _check_apart(self, options: list[dict[str, Any]], pointer: str) -> None:
        """Refuse what is written for one alternative of a ``oneOf`` and might fit another."""
        for option in options:
            for other in option.get(APART, []):
                self._spend()
                if may_overlap(option, other, lambda part: self._possible(part, pointer)):
                    raise Refusal(
                        f"{pointer}/oneOf",
                        "has alternatives that one value might fit both. Tell them apart by a "
                        "required property with a const in each, or use anyOf",
                    )

    def _merge_all(
        self, first: list[dict[str, Any]], second: list[dict[str, Any]], pointer: str
    ) -> list[dict[str, Any]]:
        merged, last = [], Unsatisfiable(pointer, "allows no value")
        for one in first:
            for other in second:
                self._spend(one, other)
                try:
                    merged.append(merge(one, other, pointer))
                except Unsatisfiable as error:
                    last = error
        if not merged:
            raise last
        return merged

    def _plain(self, schema: Any, pointer: str) -> str:
        """Give the item of a schema that combines nothing at its top."""
        if not schema:
            return "value"
        self._spend({name: schema[name] for name in ("enum", "pattern") if name in schema})
        self._check_apart([schema], pointer)
        if "enum" in schema or "const" in schema:
            return values_item(self._grammar, schema, pointer)
        types = [(kind, pointer) for kind in read_types(schema, pointer)]
        return self._any(lambda kind, place: self._typed(kind, schema, place), types, pointer)

    def _typed(self, kind: str, schema: Mapping[str, Any], pointer: str) -> str:
        match kind:
            case "object":
                return self._enclosed(object_item, schema, pointer)
            case "array":
                return self._enclosed(array_item, schema, pointer)
            case "string":
                return string_item(self._grammar, schema, pointer)
            case "integer":
                return integer_item(self._grammar, read_range(schema, pointer))
            case "number":
                return number_item(self._grammar, read_range(schema, pointer))
        return kind

    def _enclosed(self, write: Callable[..., str], schema: Mapping[str, Any], pointer: str) -> str:
        """Write what stands in brackets: nothing inside can be a rule's beginning."""
        outer, self._begin = self._begin, set()
        try:
            return write(self._grammar, self.convert, schema, pointer)
        finally:
            self._begin = outer

    def _refer(self, reference: Any, pointer: str) -> str:
        target = resolve(self._root, reference, pointer)
        if reference not in self._references:
            name = self._references[reference] = self._grammar.reserve()
            outer, self._begin = self._begin, set()
            try:
                self._grammar.fill(name, self.convert(target, reference))
            except Unsatisfiable as error:
                # Others may already refer to the rule, so it cannot just fall away.
                raise Refusal(error.pointer, error.problem) from None
            self._beginnings[name], self._begin = self._begin, outer
        name = self._references[reference]
        self._begin.add(name)
        return name

    def _words(self, schema: Any, pointer: str) -> dict[str, Any]:
        if schema is False:
            raise Unsatisfiable(pointer, "allows no value")
        if schema is not True and not isinstance(schema, dict):
            raise Refusal(pointer, "must be a schema: an object, true or false")
        return {} if schema is True else meaning(schema, pointer)

    def _list(self, words: Mapping[str, Any], name: str, pointer: str) -> list[tuple[Any, str]]:
        """Give the schemas of a list with their places."""
        options = words.get(name, [])
        if not isinstance(options, list) or (name in words and not options):
            raise Refusal(f"{pointer}/{name}", "must be a list of schemas")
        return [(option, join(pointer, name, i)) for i, option in enumerate(options)]

    def _enter(self, pointer: str) -> None:
        self._spend()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Refusal(pointer, f"nests or refers deeper than {MAX_DEPTH} levels")

    def _spend(self, *read: Mapping[str, Any]) -> None:
        """Count a step and the schemas it reads as a whole."""
        read = tuple({name: part[name] for name in part if name != APART} for part in read)
        self._grammar.spend(1 + sum(map(len, map(json_text, read))) // _CHARS_PER_COST)
