"""Objects and arrays: what may stand between their brackets.

Where a schema leaves a choice, one that is easy to write is taken: properties come in their
declared order, and none but the declared ones where ``additionalProperties`` is not given.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from inference.text.grammar.writer import literal, one_of
from inference.text.json_schema.gbnf import BLANK, Grammar, json_text
from inference.text.json_schema.key_patterns import KeyPatterns
from inference.text.json_schema.keywords import read_bounds, read_required
from inference.text.json_schema.references import join
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.strings import string_item
from inference.text.json_schema.tries import other_key

Convert: TypeAlias = Callable[[Any, str], str]
_LONG = 60


@dataclass(slots=True)
class _Pair:
    text: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class _Others:
    """Pairs or items beyond the declared ones, as many as given."""

    item: str
    least: int
    most: int | None

    def first(self, grammar: Grammar) -> list[str]:
        """Give the ways these may stand alone."""
        if self.most == 0:
            return ['""']
        most = None if self.most is None else self.most - 1
        more = grammar.repeat(_after(grammar, self.item), max(self.least - 1, 0), most)
        return [f"{self.item} {more}", *(['""'] if not self.least else [])]

    def after(self, grammar: Grammar) -> str:
        """Give what may follow something else."""
        return grammar.repeat(_after(grammar, self.item), self.least, self.most)


_NO_OTHERS = _Others('""', 0, 0)


def object_item(grammar: Grammar, convert: Convert, schema: Mapping[str, Any], pointer: str) -> str:
    """Give an item that matches the objects a schema allows."""
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise Refusal(f"{pointer}/properties", "must be an object")
    required = dict.fromkeys(read_required(schema, pointer))
    patterns = KeyPatterns(schema.get("patternProperties", {}), pointer)
    is_free = not (schema.keys() & {"additionalProperties"} or properties or required or patterns)
    additional = schema.get("additionalProperties", is_free)
    if is_free and not schema.keys() & {"minProperties", "maxProperties"}:
        return "object"
    declared = dict(properties)
    for name in required:
        declared.setdefault(
            name, True if patterns.match(name) else schema.get("additionalProperties", True)
        )
    declared = {name: patterns.narrow(name, part) for name, part in declared.items()}
    least, most = read_bounds(schema, "minProperties", "maxProperties", pointer)
    pairs = _read_pairs(convert, declared, set(required), pointer)
    pairs = _keep_most(pairs, most, pointer)
    if patterns:
        others = _read_pattern_pairs(grammar, convert, patterns, declared, pointer)
    else:
        others = _read_others(grammar, convert, additional, declared, pointer)
    if others is not _NO_OTHERS:
        room = None if most is None else most - len(pairs)
        others = _Others(others.item, 0, room)
    others = _need_least(pairs, others, least, pointer)
    return _write_object(grammar, pairs, others)


def array_item(grammar: Grammar, convert: Convert, schema: Mapping[str, Any], pointer: str) -> str:
    """Give an item that matches the arrays a schema allows."""
    least, most = read_bounds(schema, "minItems", "maxItems", pointer)
    if schema.get("uniqueItems") and (most is None or most > 1):
        raise Refusal(f"{pointer}/uniqueItems", "is not supported")
    prefix = schema.get("prefixItems", [])
    if not isinstance(prefix, list):
        raise Refusal(f"{pointer}/prefixItems", "must be a list")
    prefix = prefix if most is None else prefix[:most]
    parts = [convert(item, join(pointer, "prefixItems", i)) for i, item in enumerate(prefix)]
    num_more = max(0, least - len(parts))
    room = None if most is None else most - len(parts)
    others = _NO_OTHERS
    if room != 0 and ("items" in schema or not parts or num_more):
        try:
            item = grammar.define(convert(schema.get("items", True), join(pointer, "items")))
            others = _Others(item, num_more, room)
        except Unsatisfiable:
            if num_more:
                raise
    if not parts:
        body = one_of(others.first(grammar))
    else:
        body = f"{f' {_COMMA} '.join(parts)} {others.after(grammar)}"
    return grammar.define(f'"[" {BLANK} {body} "]"')


_COMMA = f'"," {BLANK}'


def _after(grammar: Grammar, item: str) -> str:
    return grammar.define(f"{_COMMA} {item}")


def _read_pairs(
    convert: Convert, declared: dict[str, Any], required: set[str], pointer: str
) -> list[_Pair]:
    pairs = []
    for name, schema in declared.items():
        try:
            item = convert(schema, join(pointer, "properties", name))
        except Unsatisfiable:
            if name in required:
                raise
            continue
        key = literal(json_text(name) + ":")
        pairs.append(_Pair(f"{key} {BLANK} {item}", name in required))
    return pairs


def _read_others(
    grammar: Grammar, convert: Convert, schema: Any, declared: dict[str, Any], pointer: str
) -> _Others:
    if schema is False:
        return _NO_OTHERS
    try:
        item = convert(schema, join(pointer, "additionalProperties"))
    except Unsatisfiable:
        return _NO_OTHERS
    key = other_key(grammar, declared)
    return _Others(grammar.define(f'{key} ":" {BLANK} {item}'), 0, None)


def _read_pattern_pairs(
    grammar: Grammar,
    convert: Convert,
    patterns: KeyPatterns,
    declared: dict[str, Any],
    pointer: str,
) -> _Others:
    """Give pairs whose key matches the one pattern; where several might match, there are none."""
    pattern = patterns.only_one_for_new_keys(declared)
    if pattern is None:
        return _NO_OTHERS
    place = join(pointer, "patternProperties", pattern)
    try:
        item = convert(patterns.schemas[pattern], place)
    except Unsatisfiable:
        return _NO_OTHERS
    key = string_item(grammar, {"pattern": pattern}, place)
    return _Others(grammar.define(f'{key} ":" {BLANK} {item}'), 0, None)


def _keep_most(pairs: list[_Pair], most: int | None, pointer: str) -> list[_Pair]:
    """Leave optional pairs out, the last first, until no object has too many."""
    if most is None:
        return pairs
    room = most - sum(pair.is_required for pair in pairs)
    if room < 0:
        raise Unsatisfiable(f"{pointer}/maxProperties", "is below the number of required ones")
    kept = []
    for pair in pairs:
        if pair.is_required or room > 0:
            kept.append(pair)
            room -= not pair.is_required
    return kept


def _need_least(pairs: list[_Pair], others: _Others, least: int, pointer: str) -> _Others:
    """Require optional pairs, the first first, until every object has enough."""
    missing = least - sum(pair.is_required for pair in pairs)
    for pair in pairs:
        if missing > 0 and not pair.is_required:
            pair.is_required = True
            missing -= 1
    if missing <= 0:
        return others
    if others.most == 0:
        raise Unsatisfiable(f"{pointer}/minProperties", "is above the number of possible ones")
    if missing > 1:
        # Keys that repeat would count once.
        raise Refusal(f"{pointer}/minProperties", "may be above 1 for declared ones only")
    return _Others(others.item, missing, others.most)


def _write_object(grammar: Grammar, pairs: list[_Pair], others: _Others) -> str:
    """Write the pairs from the last to the first; a comma stands before all but the first."""
    first, after = others.first(grammar), others.after(grammar)
    for pair in reversed(pairs):
        if len(after) > _LONG:
            after = grammar.define(after)
        begin = f"{pair.text} {after}"
        if pair.is_required:
            first, after = [begin], f"{_COMMA} {begin}"
        else:
            first, after = [begin, *first], f"({_COMMA} {pair.text})? {after}"
    return grammar.define(f'"{{" {BLANK} {one_of(first)} "}}"')
