"""One schema that allows what two schemas both allow, word by word; refuses where it cannot."""

from collections.abc import Callable, Mapping
from typing import Any

from inference.text.json_schema.gbnf import json_text
from inference.text.json_schema.keywords import read_required, read_types
from inference.text.json_schema.refusal import Refusal, Unsatisfiable

Schema = Mapping[str, Any]
# No word of a client's: the schemas that may not allow what this one does.
APART = "$apart"
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


def merge(first: Schema, second: Schema, pointer: str) -> dict[str, Any]:
    """Merge two schemas without ``$ref``, ``allOf``, ``anyOf`` and ``oneOf`` at their top."""
    first, second = _without_nullable(first, pointer), _without_nullable(second, pointer)
    merged = {**first, **second}
    for name in first.keys() & second.keys():
        if first[name] == second[name] and json_text(first[name]) == json_text(second[name]):
            continue
        merged[name] = _join(name, first, second, pointer)
    if "properties" in merged:
        merged["properties"] = _join_properties(first, second, pointer)
    words = {"items", "prefixItems"}
    are_both = words & first.keys() and words & second.keys()
    is_different = any(first.get(word) != second.get(word) for word in words)
    if "prefixItems" in merged and are_both and is_different:
        raise Refusal(pointer, "combines different prefixItems, which is not supported")
    return merged


def _join(name: str, first: Schema, second: Schema, pointer: str) -> Any:
    values = (first[name], second[name])
    if name == "properties":
        return None
    if name in _LOWER or name in _UPPER:
        if any(type(value) not in (int, float) for value in values):
            raise Refusal(f"{pointer}/{name}", "must be a number")
        return max(values) if name in _LOWER else min(values)
    if name in _JOINS:
        return _JOINS[name](first, second, pointer)
    raise Refusal(pointer, f"combines different words '{name}', which is not supported")


def _without_nullable(schema: Schema, pointer: str) -> Schema:
    if "nullable" not in schema:
        return schema
    plain = {name: value for name, value in schema.items() if name != "nullable"}
    return plain | ({"type": list(read_types(schema, pointer))} if "type" in schema else {})


def _join_types(first: Schema, second: Schema, pointer: str) -> list[str]:
    one, other = read_types(first, pointer), read_types(second, pointer)
    both = [name for name in one if name in other or (name == "integer" and "number" in other)]
    if "integer" in other and "number" in one:
        both.append("integer")
    if not both:
        raise Unsatisfiable(f"{pointer}/type", "is combined with another type: no value has both")
    return both


def _join_required(first: Schema, second: Schema, pointer: str) -> list[str]:
    return list(dict.fromkeys(read_required(first, pointer) + read_required(second, pointer)))


def _join_enums(first: Schema, second: Schema, pointer: str) -> list[Any]:
    lists = (first["enum"], second["enum"])
    if not all(isinstance(values, list) for values in lists):
        raise Refusal(f"{pointer}/enum", "must be a list")
    known = {json_text(value) for value in lists[1]}
    return [value for value in lists[0] if json_text(value) in known]


def _join_consts(_first: Schema, _second: Schema, pointer: str) -> Any:
    raise Unsatisfiable(f"{pointer}/const", "is combined with another constant")


def _both(name: str) -> Callable[[Schema, Schema, str], Any]:
    def join(first: Schema, second: Schema, _pointer: str) -> Any:
        return {"allOf": [first[name], second[name]]}

    return join


def _join_properties(first: Schema, second: Schema, pointer: str) -> dict[str, Any]:
    """Join the properties; what one side does not name falls under its additionalProperties."""
    sides = []
    for schema in (first, second):
        properties = schema.get("properties", {})
        if not isinstance(properties, dict):
            raise Refusal(f"{pointer}/properties", "must be an object")
        sides.append((properties, schema.get("additionalProperties", True)))
    joined = {}
    for name in (*sides[0][0], *sides[1][0]):
        schemas = [properties.get(name, others) for properties, others in sides]
        limiting = [schema for schema in schemas if schema is not True]
        joined[name] = limiting[0] if len(limiting) == 1 else {"allOf": limiting}
        if not limiting:
            joined[name] = True
        elif len(limiting) == 2 and json_text(limiting[0]) == json_text(limiting[1]):
            joined[name] = limiting[0]
    return joined


_JOINS: dict[str, Callable[[Schema, Schema, str], Any]] = {
    "type": _join_types,
    "required": _join_required,
    "enum": _join_enums,
    "const": _join_consts,
    "items": _both("items"),
    "additionalProperties": _both("additionalProperties"),
    APART: lambda first, second, _: first[APART] + second[APART],
    "uniqueItems": lambda first, second, _: first["uniqueItems"] or second["uniqueItems"],
}
