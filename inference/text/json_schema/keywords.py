"""Which words of JSON Schema mean what here, and how their values are read."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from inference.text.json_schema.numbers import Bound, Bounds
from inference.text.json_schema.refusal import Refusal, Unsatisfiable

MAX_COUNT = 65_536
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
OBJECT = frozenset(
    {
        "properties",
        "patternProperties",
        "required",
        "additionalProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
    }
)
ARRAY = frozenset(
    {
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
    }
)
STRING = frozenset({"minLength", "maxLength", "pattern", "format"})
NUMBER = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
FAMILIES = {"object": OBJECT, "array": ARRAY, "string": STRING, "number": NUMBER}
COMBINING = frozenset(
    {
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
        "unevaluatedItems",
    }
)
# No words of a client's: the schemas that may not allow what this one does, and single values.
APART, EXCEPT = "$apart", "$except"
MEANINGFUL = OBJECT | ARRAY | STRING | NUMBER | COMBINING | {"type", "enum", "const", "nullable"}
# They constrain, and cannot be expressed. Words not named here are notes.
REFUSED = frozenset({"divisibleBy", "extends", "disallow", "$dynamicRef", "$recursiveRef"})


def meaning(schema: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """Give what constrains of a schema, in today's words; refuses what is not supported."""
    for name in schema:
        if name in REFUSED:
            raise Refusal(f"{pointer}/{name}", "is not supported")
    if "$id" in schema and pointer != "#":
        raise Refusal(f"{pointer}/$id", "is supported at the root only")
    words = {
        name: value
        for name, value in schema.items()
        if name in MEANINGFUL and not (name == "nullable" and value is False)
    }
    if "dependencies" in schema:
        words |= _read_dependencies(schema, pointer)
    if isinstance(words.get("items"), list):
        if "prefixItems" in words:
            raise Refusal(f"{pointer}/items", "must be a schema beside prefixItems")
        words["prefixItems"] = words.pop("items")
        words |= {"items": schema["additionalItems"]} if "additionalItems" in schema else {}
    return words


def _read_dependencies(schema: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """Read the older word for two of today's."""
    given = schema["dependencies"]
    if not isinstance(given, dict) or schema.keys() & {"dependentRequired", "dependentSchemas"}:
        raise Refusal(f"{pointer}/dependencies", "must be an object, without its successors")
    names = {name: part for name, part in given.items() if isinstance(part, list)}
    schemas = {name: part for name, part in given.items() if name not in names}
    return {"dependentRequired": names, "dependentSchemas": schemas}


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
    nullable = ["null"] if read_flag(schema, "nullable", pointer) else []
    types = tuple(dict.fromkeys([*names, *nullable]))
    return tuple(name for name in types if name != "integer" or "number" not in types)


def read_count(schema: Mapping[str, Any], name: str, pointer: str) -> int | None:
    """Give a number of characters, items or properties."""
    value = schema.get(name)
    if type(value) is float and value.is_integer():
        value = int(value)
    if name in schema and (type(value) is not int or value < 0):
        raise Refusal(f"{pointer}/{name}", "must be an integer of at least 0")
    return value


def read_required(schema: Mapping[str, Any], pointer: str) -> list[str]:
    """Give the names of ``required``."""
    return read_names(schema.get("required", []), f"{pointer}/required")


def read_names(names: Any, pointer: str) -> list[str]:
    """Give a list of names."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refusal(pointer, "must be a list of names")
    return names


def read_object(schema: Mapping[str, Any], name: str, pointer: str) -> dict[str, Any]:
    """Give a word's object, empty where there is none."""
    value = schema.get(name, {})
    if not isinstance(value, dict):
        raise Refusal(f"{pointer}/{name}", "must be an object")
    return value


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


def read_step(schema: Mapping[str, Any], pointer: str) -> Decimal | None:
    """Give what numbers are multiples of."""
    value = schema.get("multipleOf")
    if "multipleOf" not in schema:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise Refusal(f"{pointer}/multipleOf", "must be a number above 0")
    return Decimal(str(value))


def read_flag(schema: Mapping[str, Any], name: str, pointer: str) -> bool:
    """Give a word that is true or false."""
    value = schema.get(name, False)
    if type(value) is not bool:
        raise Refusal(f"{pointer}/{name}", "must be true or false")
    return value


def value_key(value: Any) -> str:
    """Give a text that is the same for equal values, as JSON Schema has it: 1 equals 1.0."""
    return json.dumps(_plain_numbers(value), sort_keys=True)


def _plain_numbers(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain_numbers(one) for one in value]
        case dict():
            return {name: _plain_numbers(one) for name, one in value.items()}
    return value


def _read_limits(schema: Mapping[str, Any], names: tuple[str, str], pointer: str) -> list[Bound]:
    limits = []
    for name in names:
        value = schema.get(name)
        if name in schema and type(value) not in (int, float):
            raise Refusal(f"{pointer}/{name}", "must be a number")
        if value is not None:
            limits.append((Decimal(str(value)), name.startswith("exclusive")))
    return limits
