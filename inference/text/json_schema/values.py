"""The values of ``enum`` and ``const``, as far as the words beside them allow them."""

from collections.abc import Mapping
from typing import Any

from inference.text.json_schema.gbnf import Grammar, json_text
from inference.text.json_schema.keywords import (
    ARRAY,
    OBJECT,
    TYPES,
    read_bounds,
    read_range,
    read_types,
)
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.tries import any_text

MAX_VALUES = 10_000
# Of which kind of value each says more than is looked at here.
_UNSEEN = {"object": OBJECT, "array": ARRAY, "string": frozenset({"pattern", "format"})}


def values_item(grammar: Grammar, schema: Mapping[str, Any], pointer: str) -> str:
    """Give an item that matches the values, written as compact JSON."""
    values = read_values(schema, pointer)
    types = read_types(schema, pointer) if "type" in schema else TYPES
    bounds = read_range(schema, pointer)
    least, most = read_bounds(schema, "minLength", "maxLength", pointer)
    texts = []
    for value in values:
        kinds = kinds_of(value)
        if _UNSEEN.get(kinds[0], frozenset()) & schema.keys():
            raise Refusal(pointer, "has an enum beside other words, which is not supported")
        is_fit = not types or any(kind in types for kind in kinds)
        if isinstance(value, str):
            is_fit &= least <= len(value) and (most is None or len(value) <= most)
        elif "number" in kinds:
            is_fit &= bounds.allow(value)
        if is_fit:
            texts.append(json_text(value))
    if not texts:
        raise Unsatisfiable(pointer, "has no value in its enum that fits")
    return grammar.define(any_text(grammar, texts))


def read_values(schema: Mapping[str, Any], pointer: str) -> list[Any]:
    """Give the values that ``enum`` and ``const`` name, whatever other words say."""
    values = schema.get("enum", [])
    if not isinstance(values, list):
        raise Refusal(f"{pointer}/enum", "must be a list")
    if len(values) > MAX_VALUES:
        raise Refusal(f"{pointer}/enum", f"has more than {MAX_VALUES} values")
    if "const" not in schema:
        return values
    if "enum" not in schema:
        return [schema["const"]]
    return [value for value in values if json_text(value) == json_text(schema["const"])]


def kinds_of(value: Any) -> tuple[str, ...]:
    """Give the types a value has."""
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case int():
            return ("integer", "number")
        case float():
            return ("integer", "number") if value.is_integer() else ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
    return ("object",)
