"""Turn a schema into a grammar, or say at which place and why that cannot be done.

Every text of the grammar is JSON that the schema allows; not every such JSON is a text of it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar.checks import endless_rules
from inference.text.grammar.syntax import parse_rules
from inference.text.grammar.writer import one_of
from inference.text.json_schema.alternatives import MAX_DEPTH, Alternatives, Plain
from inference.text.json_schema.arrays import array_item
from inference.text.json_schema.exclusions import ranges_without, without_empty
from inference.text.json_schema.gbnf import Grammar, json_text
from inference.text.json_schema.keywords import (
    COMBINING,
    EXCEPT,
    read_range,
    read_step,
    read_types,
)
from inference.text.json_schema.multiples import multiples_item
from inference.text.json_schema.numbers import integer_item, number_item
from inference.text.json_schema.object_plan import ObjectPlan, read_plan
from inference.text.json_schema.objects import write_objects
from inference.text.json_schema.references import find_loop, resolve
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.strings import string_item
from inference.text.json_schema.tries import any_text
from inference.text.json_schema.values import finite_texts, small_texts, value_texts

MAX_BYTES = 64 * 1024


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
    except UnicodeEncodeError:
        raise Refusal("#", "is not valid Unicode") from None
    except ValueError:
        raise Refusal("#", "has a number that is none of JSON, or too large") from None
    if size > MAX_BYTES:
        raise Refusal("#", f"is larger than {MAX_BYTES} bytes")


class Converter:
    """Walks one schema. ``convert`` gives an item of the grammar for any part of it."""

    def __init__(self, root: Any, grammar: Grammar) -> None:
        _check_size(root)
        self._root, self.grammar = root, grammar
        self._alternatives = Alternatives(root, grammar)
        # The rules of references and of combinations, and the places that these came from.
        self._names: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._used: set[str] = set()
        # Which such rules a rule may begin with: around these it must not come back to itself.
        self._beginnings: dict[str, set[str]] = {}
        self._begin: set[str] = set()

    def item(self, pointer: str = "#") -> str:
        """Give the item of the part at a pointer; raises Refusal."""
        item = self._refer(pointer, pointer)
        loop = find_loop(self._beginnings) or self._find_endless(item)
        if loop is not None:
            raise Refusal(self._places[loop], "refers to itself without end")
        return item

    def _find_endless(self, item: str) -> str | None:
        """Give a shared rule whose values must hold such values again, if the item leads there."""
        if not self._used:
            return None
        endless = endless_rules(parse_rules(self.grammar.text(item)))
        return next((name for name in self._places if name in endless), None)

    def convert(self, schema: Any, pointer: str) -> str:
        """Give the item that matches what a schema allows."""
        with self._alternatives.level(pointer):
            words = self._alternatives.words(schema, pointer)
            if not words:
                return "value"
            if words.keys() == {"$ref"}:
                return self._refer(words["$ref"], pointer)
            if words.keys() == {"allOf"}:
                parts = self._alternatives.options(words, "allOf", pointer)
                if len(parts) == 1:
                    return self.convert(*parts[0])
            if words.keys() & COMBINING:
                self._alternatives.spend_on(words)
                return self._share(json_text(words), pointer, lambda: self._any(words, pointer))
            return self._any(words, pointer)

    def texts(self, schema: Any, pointer: str) -> list[str] | None:
        """Give all JSON texts that are written for a schema, where it names few values."""
        found: list[str] = []
        for option in self._alternatives.expand(schema, pointer):
            texts = finite_texts(option, pointer)
            if texts is None or EXCEPT in option:
                return None
            found += texts
        return list(dict.fromkeys(found))

    def expand(self, schema: Any, pointer: str) -> list[Plain]:
        """Give the alternatives of a schema."""
        return self._alternatives.expand(schema, pointer)

    def _any(self, words: Plain, pointer: str) -> str:
        """Give an item for one of the alternatives; those that no value fits fall away."""
        found = _Found(Unsatisfiable(pointer, "allows no value"))
        for option in self._alternatives.combine(words, pointer):
            self._alternatives.spend_on({name: option[name] for name in _LONG & option.keys()})
            self._alternatives.check_apart(option, pointer)
            self._add(option, pointer, found)
        items = found.items
        if found.texts:
            items.append(self.grammar.define(any_text(self.grammar, found.texts)))
        if found.plans:
            with self._enclosed():
                items.append(write_objects(self, found.plans))
        if not items:
            raise found.last
        return items[0] if len(set(items)) == 1 else self.grammar.define(one_of(items))

    def _add(self, option: Plain, pointer: str, found: "_Found") -> None:
        """Add what an alternative allows to what is found."""
        if not option:
            found.items.append("value")
            return
        kinds = ("",) if option.keys() & {"enum", "const"} else read_types(option, pointer)
        for kind in kinds:
            try:
                self._add_kind(kind, option, pointer, found)
            except Unsatisfiable as error:
                found.last = error

    def _add_kind(self, kind: str, option: Plain, pointer: str, found: "_Found") -> None:
        match kind:
            case "":
                found.texts += value_texts(option, pointer)
            case "object":
                with self._enclosed():
                    plan = read_plan(self, without_empty(option, kind, pointer), pointer)
                if plan is None:
                    found.items.append("object")
                else:
                    found.plans.append(plan)
            case "array":
                with self._enclosed():
                    option = without_empty(option, kind, pointer)
                    found.items.append(array_item(self, option, pointer))
            case "string":
                found.items.append(string_item(self.grammar, option, pointer))
            case "integer" | "number":
                found.items.append(self._number(kind, option, pointer))
            case _:
                found.texts += small_texts(kind, option)

    def _number(self, kind: str, option: Plain, pointer: str) -> str:
        step, items = read_step(option, pointer), []
        for bounds in ranges_without(read_range(option, pointer), option):
            try:
                if step is not None:
                    items.append(multiples_item(self.grammar, bounds, step, kind))
                elif kind == "integer":
                    items.append(integer_item(self.grammar, bounds))
                else:
                    items.append(number_item(self.grammar, bounds))
            except Unsatisfiable as error:
                last = error
        if not items:
            raise last
        return items[0] if len(items) == 1 else self.grammar.define(one_of(items))

    def _refer(self, reference: Any, pointer: str) -> str:
        target = resolve(self._root, reference, pointer)
        return self._share(reference, reference, lambda: self.convert(target, reference))

    def _share(self, key: str, place: str, write: Callable[[], str]) -> str:
        """Give the rule of a key, written when it is first asked for; it may refer to itself."""
        if key in self._names:
            self._used.add(key)
        else:
            name = self._names[key] = self.grammar.reserve()
            self._places[name] = place
            outer, self._begin = self._begin, set()
            try:
                self.grammar.fill(name, write())
            except Unsatisfiable as error:
                if key in self._used:
                    # Others refer to the rule already, so it cannot just fall away.
                    raise Refusal(error.pointer, error.problem) from None
                del self._names[key]
                raise
            finally:
                self._beginnings[name], self._begin = self._begin, outer
        self._begin.add(self._names[key])
        return self._names[key]

    @contextmanager
    def _enclosed(self) -> Iterator[None]:
        """Write what stands in brackets: nothing inside can be a rule's beginning."""
        outer, self._begin = self._begin, set()
        try:
            yield
        finally:
            self._begin = outer


# What of an alternative takes long to read.
_LONG = frozenset({"enum", "pattern", EXCEPT})


@dataclass(slots=True)
class _Found:
    """What the alternatives of one schema allow, by how it is written."""

    last: Unsatisfiable
    items: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    plans: list[ObjectPlan] = field(default_factory=list)
