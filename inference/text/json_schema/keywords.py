"""Which words of JSON Schema mean what here, and how their values are read."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from inference.text.json_schema.numbers import Bound, Bounds
from inference.text.json_schema.refusal import Refusal, Unsatisfiable

MAX_COUNT = 2000
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
OBJECT = frozenset(
    {
        "properties",
        "patternProperties",
        "required",
        "additionalProperties",
        "minProperties",
        "maxProperties",
    }
)
ARRAY = frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"})
STRING = frozenset({"minLength", "maxLength", "pattern", "format"})
NUMBER = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
FAMILIES = {"object": OBJECT, "array": ARRAY, "string": STRING, "number": NUMBER}
COMBINING = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
MEANINGFUL = OBJECT | ARRAY | STRING | NUMBER | COMBINING | {"type", "enum", "const", "nullable"}
# They constrain, and cannot be (or are not yet) expressed. Words not named here are notes.
REFUSED = frozenset(
    {
        "not",
        "if",
        "then",
        "else",
        "propertyNames",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
        "unevaluatedItems",
        "additionalItems",
        "contains",
        "minContains",
        "maxContains",
        "multipleOf",
        "divisibleBy",
        "extends",
        "disallow",
        "$dynamicRef",
        "$recursiveRef",
    }
)


def meaning(schema: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """Give what constrains of a schema; refuses what is not supported."""
    for name in schema:
        if name in REFUSED:
            raise Refusal(f"{pointer}/{name}", "is not supported")
    if "$id" in schema and pointer != "#":
        raise Refusal(f"{pointer}/$id", "is supported at the root only")
    return {
        name: value
        for name, value in schema.items()
        if name in MEANINGFUL and not (name == "nullable" and value is False)
    }


def read_types(schema: Mapping[str, Any], pointer: str) -> tuple[str, ...]:
    """Give the types a schema allows; without ``type``, those its other words speak of."""
    if "type" not in schema:
        spoken = tuple(name for name, words in FAMILIES.items() if words & schema.keys())
        return spoken or TYPES
    named = schema["type"]
    names = [named] if isinstance(named, str) else named
    if not isinstance(names, list) or not all(name in TYPES for name in names):
        raise Refusal(f"{pointer}/type", "must be a type, or a list of types, of JSON Schema")
    if not names:
        raise Unsatisfiable(f"{pointer}/type", "allows no type")
    nullable = ["null"] if _read_flag(schema, "nullable", pointer) else []
    types = tuple(dict.fromkeys([*names, *nullable]))
    return tuple(name for name in types if name != "integer" or "number" not in types)


def read_count(schema: Mapping[str, Any], name: str, pointer: str) -> int | None:
    """Give a number of characters, items or properties."""
    value = schema.get(name)
    if name in schema and (type(value) is not int or value < 0):
        raise Refusal(f"{pointer}/{name}", "must be an integer of at least 0")
    return value


def read_required(schema: Mapping[str, Any], pointer: str) -> list[str]:
    """Give the names of ``required``."""
    names = schema.get("required", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refusal(f"{pointer}/required", "must be a list of names")
    return names


def read_bounds(
    schema: Mapping[str, Any], least: str, most: str, pointer: str
) -> tuple[int, int | None]:
    """Give two such numbers, least first."""
    low, high = read_count(schema, least, pointer) or 0, read_count(schema, most, pointer)
    for name, value in ((least, low), (most, high)):
        if value is not None and value > MAX_COUNT:
            raise Refusal(f"{pointer}/{name}", f"must be at most {MAX_COUNT}")
    if high is not None and low > high:
        raise Unsatisfiable(f"{pointer}/{least}", f"is above {most}")
    return low, high


def read_range(schema: Mapping[str, Any], pointer: str) -> Bounds:
    """Give the bounds of numbers: the tighter of each side's two words."""
    lows = _read_limits(schema, ("minimum", "exclusiveMinimum"), pointer)
    highs = _read_limits(schema, ("maximum", "exclusiveMaximum"), pointer)
    low = max(lows, default=None)
    high = min(highs, key=lambda bound: (bound[0], not bound[1]), default=None)
    return Bounds(low, high, pointer)


def _read_limits(schema: Mapping[str, Any], names: tuple[str, str], pointer: str) -> list[Bound]:
    limits = []
    for name in names:
        value = schema.get(name)
        if name in schema and type(value) not in (int, float):
            raise Refusal(f"{pointer}/{name}", "must be a number")
        if value is not None:
            limits.append((Decimal(str(value)), name.startswith("exclusive")))
    return limits


def _read_flag(schema: Mapping[str, Any], name: str, pointer: str) -> bool:
    value = schema.get(name, False)
    if type(value) is not bool:
        raise Refusal(f"{pointer}/{name}", "must be true or false")
    return value
