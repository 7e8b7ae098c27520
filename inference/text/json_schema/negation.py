"""What a schema does not allow, as schemas: each of them refuses what it does, all of them what
``not`` of it would. Types that a word says nothing about satisfy it, so they fall away.
"""

from collections.abc import Callable, Mapping
from typing import Any

from inference.text.json_schema.keywords import (
    TYPES,
    meaning,
    read_count,
    read_names,
    read_object,
    read_types,
)
from inference.text.json_schema.references import join
from inference.text.json_schema.refusal import Refusal

# A schema, and where what it comes from stands.
Placed = tuple[Any, str]
Resolve = Callable[[Any, str], Any]
# Words that narrow something else than values by themselves.
_BESIDE = frozenset({"then", "else", "minContains", "nullable"})
_TURNED = {
    "minimum": ("number", "exclusiveMaximum"),
    "maximum": ("number", "exclusiveMinimum"),
    "exclusiveMinimum": ("number", "maximum"),
    "exclusiveMaximum": ("number", "minimum"),
}
_COUNTS = {
    "minLength": ("string", "maxLength"),
    "maxLength": ("string", "minLength"),
    "minItems": ("array", "maxItems"),
    "maxItems": ("array", "minItems"),
    "minProperties": ("object", "maxProperties"),
    "maxProperties": ("object", "minProperties"),
}


def negate(schema: Any, pointer: str, resolve: Resolve) -> list[Placed]:
    """Give schemas that together allow nothing but what a schema does not; raises Refusal."""
    if type(schema) is bool:
        return [] if schema else [(True, pointer)]
    if not isinstance(schema, dict):
        raise Refusal(pointer, "must be a schema: an object, true or false")
    words = meaning(schema, pointer)
    return [
        option
        for name in words
        if name not in _BESIDE
        for option in _negate_word(name, words, pointer, resolve)
    ]


def is_negated_in_part(schema: Any, pointer: str) -> bool:
    """Tell whether ``negate`` leaves out something that a schema does not allow.

    Where integers are not allowed, other numbers are; but no word of ours means these alone.
    """
    words = meaning(schema, pointer) if isinstance(schema, dict) else {}
    return "type" in words and "integer" in read_types(words, pointer)


def _negate_word(
    name: str, words: Mapping[str, Any], pointer: str, resolve: Resolve
) -> list[Placed]:
    value, place = words[name], f"{pointer}/{name}"
    match name:
        case "type":
            return _other_types(words, pointer)
        case "enum" | "const":
            return [({"not": {name: value}}, pointer)]
        case "not":
            return [(value, place)]
        case "$ref":
            return [({"not": resolve(value, pointer)}, value)]
        case "anyOf" if isinstance(value, list):
            return [({"allOf": [{"not": option} for option in value]}, pointer)]
        case "allOf" if isinstance(value, list):
            return [({"not": part}, join(place, i)) for i, part in enumerate(value)]
        case "required":
            absent = read_names(value, place)
            return [({"type": "object", "properties": {one: False}}, pointer) for one in absent]
        case "properties":
            parts = read_object(words, name, pointer)
            return [(_with_other(one, part), join(place, one)) for one, part in parts.items()]
        case "items" if "prefixItems" not in words:
            return [({"type": "array", "contains": {"not": value}}, pointer)]
        case "contains" if "minContains" not in words and "maxContains" not in words:
            return [({"type": "array", "items": {"not": value}}, pointer)]
    if name in _TURNED:
        kind, turned = _TURNED[name]
        return [({"type": kind, turned: value}, pointer)]
    if name in _COUNTS:
        return _other_count(name, words, pointer)
    raise Refusal(place, "is not supported where its opposite is needed (in not, or in if)")


def _other_types(words: Mapping[str, Any], pointer: str) -> list[Placed]:
    """Give all other types; without integers there are no numbers, as not all could be told."""
    known = set(read_types(words, pointer))
    known |= {"number"} if "integer" in known else {"integer"} if "number" in known else set()
    others = [name for name in TYPES if name not in known]
    return [({"type": others}, pointer)] if others else []


def _other_count(name: str, words: Mapping[str, Any], pointer: str) -> list[Placed]:
    kind, turned = _COUNTS[name]
    count = read_count(words, name, pointer) or 0
    if name.startswith("max"):
        return [({"type": kind, turned: count + 1}, pointer)]
    return [({"type": kind, turned: count - 1}, pointer)] if count else []


def _with_other(name: str, schema: Any) -> dict[str, Any]:
    """Describe objects that have a property which a schema does not allow."""
    return {"type": "object", "required": [name], "properties": {name: {"not": schema}}}
