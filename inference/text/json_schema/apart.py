"""Can one value be allowed by two schemas? What cannot be ruled out is taken for possible.

``oneOf`` needs to know it: a grammar writes what one alternative allows, and no other may allow
the same.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from inference.text.json_schema.keywords import (
    EXCEPT,
    TYPES,
    read_bounds,
    read_range,
    read_required,
    read_types,
    value_key,
)
from inference.text.json_schema.numbers import Bounds

Plain: TypeAlias = Mapping[str, Any]
# Gives the alternatives of a schema, each without combining words at its top.
Expand: TypeAlias = Callable[[Any], list[dict[str, Any]]]
_MAX_NESTING = 3


def may_overlap(written: Plain, other: Plain, expand: Expand, nesting: int = 0) -> bool:
    """Tell whether a text written for one plain schema might be allowed by another.

    Written objects hold declared properties only, unless ``additionalProperties`` is given.
    """
    values = _values(written)
    if values is not None:
        return any(_may_allow(other, value) for value in values)
    values = _values(other)
    if values is not None:
        return any(_may_allow(written, value) for value in values)
    kinds = set(_kinds(read_types(written, ""))) & set(_kinds(_allowed_types(other)))
    return any(_overlap_in(kind, written, other, expand, nesting) for kind in kinds)


def _overlap_in(kind: str, written: Plain, other: Plain, expand: Expand, nesting: int) -> bool:
    match kind:
        case "string":
            return _may_meet(written, other, "minLength", "maxLength")
        case "number":
            return _ranges_meet(read_range(written, ""), read_range(other, ""))
        case "array":
            return _may_meet(written, other, "minItems", "maxItems")
        case "object":
            return not _are_objects_apart(written, other, expand, nesting)
    return True


def _are_objects_apart(written: Plain, other: Plain, expand: Expand, nesting: int) -> bool:
    mine, others = written.get("properties", {}), other.get("properties", {})
    needed, wanted = set(read_required(written, "")), set(read_required(other, ""))
    is_closed = bool(mine or needed) and not written.get("patternProperties")
    is_closed &= written.get("additionalProperties", False) is False
    if is_closed and wanted - mine.keys() - needed:
        return True
    is_strict = other.get("additionalProperties") is False and not other.get("patternProperties")
    if is_strict and needed - others.keys():
        return True
    if nesting >= _MAX_NESTING:
        return False
    return any(
        _are_values_apart(mine[name], others[name], expand, nesting + 1)
        for name in sorted(needed & mine.keys() & others.keys())
    )


def _are_values_apart(first: Any, second: Any, expand: Expand, nesting: int) -> bool:
    if first is False or second is False:
        return True
    return not any(
        may_overlap(one, other, expand, nesting)
        for one in expand(first)
        for other in expand(second)
    )


def _values(schema: Plain) -> list[Any] | None:
    """Give the values of ``enum`` and ``const``, where there are any."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def _may_allow(schema: Plain, value: Any) -> bool:
    known = _values(schema)
    if known is not None and value_key(value) not in map(value_key, known):
        return False
    if value_key(value) in map(value_key, schema.get(EXCEPT, ())):
        return False
    kind = _kind(value)
    if kind not in _kinds(_allowed_types(schema)):
        return False
    if kind == "number":
        return read_range(schema, "").allow(value)
    if kind == "string":
        return _is_within(len(value), schema, "minLength", "maxLength")
    if kind == "object":
        return set(read_required(schema, "")) <= set(value)
    return True


def _allowed_types(schema: Plain) -> tuple[str, ...]:
    """Give the types a schema lets through: without ``type``, all."""
    return read_types(schema, "") if "type" in schema else TYPES


def _kinds(types: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("number" if name == "integer" else name for name in types)


def _kind(value: Any) -> str:
    if _is_number(value):
        return "number"
    names = {bool: "boolean", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _may_meet(first: Plain, second: Plain, least: str, most: str) -> bool:
    (low, high), (other_low, other_high) = (
        read_bounds(schema, least, most, "") for schema in (first, second)
    )
    return (high is None or other_low <= high) and (other_high is None or low <= other_high)


def _is_within(count: int, schema: Plain, least: str, most: str) -> bool:
    low, high = read_bounds(schema, least, most, "")
    return low <= count and (high is None or count <= high)


def _ranges_meet(first: Bounds, second: Bounds) -> bool:
    for low, high in ((first.low, second.high), (second.low, first.high)):
        if low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))):
            return False
    return True
