"""The values of ``enum`` and ``const``, as far as the words beside them allow them."""

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

from inference.text.grammar.automaton import Automaton
from inference.text.json_schema import formats
from inference.text.json_schema.gbnf import json_text
from inference.text.json_schema.key_patterns import finds, open_search
from inference.text.json_schema.keywords import (
    ARRAY,
    EXCEPT,
    OBJECT,
    TYPES,
    read_bounds,
    read_range,
    read_step,
    read_types,
    value_key,
)
from inference.text.json_schema.numbers import is_multiple
from inference.text.json_schema.refusal import Refusal, Unsatisfiable

MAX_VALUES = 10_000
# Of integers so many count as values that a schema names.
_MAX_INTEGERS = 256
# Of which kind of value each says more than is looked at here.
_UNSEEN = {"object": OBJECT, "array": ARRAY}


def value_texts(schema: Mapping[str, Any], pointer: str) -> list[str]:
    """Give the values as compact JSON."""
    values = read_values(schema, pointer)
    types = read_types(schema, pointer) if "type" in schema else TYPES
    bounds, step = read_range(schema, pointer), read_step(schema, pointer)
    least, most = read_bounds(schema, "minLength", "maxLength", pointer)
    searches = _open_searches(schema, pointer)
    texts = []
    for value in values:
        kinds = kinds_of(value)
        if _UNSEEN.get(kinds[0], frozenset()) & schema.keys():
            raise Refusal(pointer, "has an enum beside other words, which is not supported")
        is_fit = any(kind in types for kind in kinds)
        if isinstance(value, str):
            is_fit &= least <= len(value) and (most is None or len(value) <= most)
            is_fit &= all(finds(search, value) for search in searches)
        elif "number" in kinds:
            is_fit &= bounds.allow(value) and (step is None or is_multiple(value, step))
        if is_fit:
            texts.append(json_text(value))
    if not texts:
        raise Unsatisfiable(pointer, "has no value in its enum that fits")
    return texts


def _open_searches(schema: Mapping[str, Any], pointer: str) -> list[Automaton]:
    """Give what texts must match by ``pattern`` and ``format``."""
    searches = []
    if "pattern" in schema:
        searches.append(open_search(schema["pattern"], f"{pointer}/pattern"))
    form = schema.get("format")
    if form in formats.REFUSED:
        raise Refusal(f"{pointer}/format", f"is '{form}', which is not supported")
    if isinstance(form, str) and form in formats.PATTERNS:
        searches.append(open_search(formats.PATTERNS[form], f"{pointer}/format"))
    return searches


def finite_texts(schema: Mapping[str, Any], pointer: str) -> list[str] | None:
    """Give the texts of all values of a plain schema, if these are few and need no searching."""
    if EXCEPT in schema:
        return None
    if schema.keys() & {"enum", "const"}:
        return value_texts(schema, pointer)
    texts: list[str] = []
    for kind in read_types(schema, pointer):
        if kind in ("boolean", "null"):
            texts += small_texts(kind, schema)
        elif kind == "integer" and "multipleOf" not in schema:
            bounds = read_range(schema, pointer)
            if not bounds.low or not bounds.high:
                return None
            low = bounds.low[0].to_integral_value(ROUND_CEILING)
            high = bounds.high[0].to_integral_value(ROUND_FLOOR)
            if high - low >= _MAX_INTEGERS:
                return None
            texts += [str(one) for one in range(int(low), int(high) + 1) if bounds.allow(one)]
        else:
            return None
    return texts


def small_texts(kind: str, schema: Mapping[str, Any]) -> list[str]:
    """Give the texts of ``boolean`` or ``null`` that are not excluded."""
    values: list[Any] = [True, False] if kind == "boolean" else [None]
    excluded = {value_key(value) for value in schema.get(EXCEPT, ())}
    return [json_text(value) for value in values if value_key(value) not in excluded]


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
    return [value for value in values if value_key(value) == value_key(schema["const"])]


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
