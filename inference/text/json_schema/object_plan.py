"""What the objects of one plain schema hold: pairs in their declared order, then others.

Where a schema leaves a choice, one that is easy to write is taken: properties come in their
declared order, and none but the declared ones where ``additionalProperties`` is not given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inference.text.json_schema.gbnf import BLANK
from inference.text.json_schema.key_names import KeyNames
from inference.text.json_schema.key_patterns import KeyPatterns
from inference.text.json_schema.keywords import read_bounds, read_object, read_required
from inference.text.json_schema.references import join
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.strings import string_item
from inference.text.json_schema.tries import other_key
from inference.text.json_schema.writing import SchemaWriter


@dataclass(frozen=True, slots=True)
class Pair:
    """A declared property: its name, its values' schema and item, and whether it must be there."""

    name: str
    item: str
    is_required: bool
    schema: Any = field(compare=False)
    pointer: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class ObjectPlan:
    """The pairs, an item of any further pair (or none), and how many there are to be in all.

    ``most`` None: as many as there are. Further keys may repeat, so only one of them counts.
    """

    pairs: tuple[Pair, ...]
    other: str | None
    least: int
    most: int | None

    @property
    def is_counted(self) -> bool:
        """Whether pairs need to be counted while they are written."""
        num_required = sum(pair.is_required for pair in self.pairs)
        is_short = self.most is not None and (self.other or self.most < len(self.pairs))
        return self.least > num_required or bool(is_short)


def read_plan(writer: SchemaWriter, schema: Mapping[str, Any], pointer: str) -> ObjectPlan | None:
    """Give the plan of a schema's objects; None where they may hold anything."""
    return _Reader(writer, schema, pointer).read()


class _Reader:
    """Reads one schema."""

    def __init__(self, writer: SchemaWriter, schema: Mapping[str, Any], pointer: str) -> None:
        self._writer, self._schema, self._pointer = writer, schema, pointer
        self._required = dict.fromkeys(read_required(schema, pointer))
        self._properties = read_object(schema, "properties", pointer)
        self._patterns = KeyPatterns(writer.grammar, schema.get("patternProperties", {}), pointer)
        self._names = self._read_names()
        is_bare = not (self._properties or self._required or self._patterns)
        self._is_free = is_bare and not self._names and "additionalProperties" not in schema
        self._additional = schema.get("additionalProperties", is_bare)

    def _read_names(self) -> KeyNames | None:
        names = self._schema.get("propertyNames", True)
        if names is True or names == {}:
            return None
        place = f"{self._pointer}/propertyNames"
        try:
            return KeyNames(self._writer.expand(names, place), place)
        except Unsatisfiable:
            return KeyNames([], place)

    def read(self) -> ObjectPlan | None:
        least, most = read_bounds(self._schema, "minProperties", "maxProperties", self._pointer)
        if self._is_free and least == 0 and most is None:
            return None
        declared = self._declared()
        pairs = self._pairs(declared)
        num_required = sum(pair.is_required for pair in pairs)
        if most is not None and num_required > most:
            place = f"{self._pointer}/maxProperties"
            raise Unsatisfiable(place, "is below the number of required ones")
        other = self._other(declared)
        room = len(pairs) + (other is not None)
        if least > room and other is not None:
            # Keys that repeat would count once.
            problem = "may be above 1 for declared ones only"
            raise Refusal(f"{self._pointer}/minProperties", problem)
        if least > room:
            place = f"{self._pointer}/minProperties"
            raise Unsatisfiable(place, "is above the number of possible ones")
        return ObjectPlan(pairs, other, least, most)

    def _declared(self) -> dict[str, Any]:
        """Give the schemas of all names that are known, in the order in which they come."""
        declared = dict(self._properties)
        for name in self._required:
            is_matched = bool(self._patterns.match(name))
            others = self._schema.get("additionalProperties", True)
            declared.setdefault(name, True if is_matched else others)
        if self._names is not None:
            for name in self._names.listed() or ():
                if not self._patterns.match(name):
                    declared.setdefault(name, self._additional)
            declared = {
                name: part if self._names.allow(name) else False for name, part in declared.items()
            }
        return {name: self._patterns.narrow(name, part) for name, part in declared.items()}

    def _pairs(self, declared: dict[str, Any]) -> tuple[Pair, ...]:
        pairs = []
        for name, schema in declared.items():
            pointer = join(self._pointer, "properties", name)
            try:
                item = self._writer.convert(schema, pointer)
            except Unsatisfiable:
                if name in self._required:
                    raise
                continue
            pairs.append(Pair(name, item, name in self._required, schema, pointer))
        return tuple(pairs)

    def _other(self, declared: dict[str, Any]) -> str | None:
        """Give the item of a pair that is not declared; None where there is to be none."""
        try:
            if self._patterns:
                return self._patterned(declared)
            return self._additional_pair(declared)
        except Unsatisfiable:
            return None

    def _additional_pair(self, declared: dict[str, Any]) -> str | None:
        schema, grammar = self._additional, self._writer.grammar
        if schema is False or (self._names and self._names.listed() is not None):
            return None
        key = self._names.item(grammar, declared) if self._names else other_key(grammar, declared)
        if key is None:
            return None
        item = self._writer.convert(schema, join(self._pointer, "additionalProperties"))
        return grammar.define(f'{key} ":" {BLANK} {item}')

    def _patterned(self, declared: dict[str, Any]) -> str | None:
        """Give pairs whose key matches the one pattern; none where several might match."""
        pattern = self._patterns.only_one_for_new_keys(declared)
        if pattern is None:
            return None
        if self._names:
            place = f"{self._pointer}/propertyNames"
            raise Refusal(place, "is not supported beside patternProperties")
        place = join(self._pointer, "patternProperties", pattern)
        item = self._writer.convert(self._patterns.schemas[pattern], place)
        key = string_item(self._writer.grammar, {"pattern": pattern}, place)
        return self._writer.grammar.define(f'{key} ":" {BLANK} {item}')
