"""One schema that allows what two schemas both allow, word by word; refuses where it cannot."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import lcm
from typing import Any

from inference.text.json_schema.gbnf import json_text
from inference.text.json_schema.keywords import (
    APART,
    EXCEPT,
    meaning,
    read_object,
    read_required,
    read_step,
    read_types,
    value_key,
)
from inference.text.json_schema.numbers import as_fraction
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.values import kinds_of

Schema = Mapping[str, Any]
_LOWER = (
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "minItems",
    "minProperties",
    "minContains",
)
_UPPER = (
    "maximum",
    "exclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
    "maxContains",
)
_MAX_STEP = 10**15
_MEMBERS = frozenset({"properties", "patternProperties"})
_SIMPLE = frozenset({"type", "enum", "const", "not"})


def merge(first: Schema, second: Schema, pointer: str) -> dict[str, Any]:
    """Merge two schemas that combine nothing at their top."""
    first, second = _without_nullable(first, pointer), _without_nullable(second, pointer)
    merged = {**first, **second}
    for name in first.keys() & second.keys():
        if first[name] == second[name] and json_text(first[name]) == json_text(second[name]):
            continue
        merged[name] = _join(name, first, second, pointer)
    for name in _MEMBERS & merged.keys():
        merged[name] = _join_members(name, first, second, pointer)
    words = {"items", "prefixItems"}
    are_both = words & first.keys() and words & second.keys()
    is_different = any(first.get(word) != second.get(word) for word in words)
    if "prefixItems" in merged and are_both and is_different:
        raise Refusal(pointer, "combines different prefixItems, which is not supported")
    _refuse_impossible(merged, pointer)
    return _without_excepted(merged, pointer)


def excluded_values(schema: Any) -> list[Any] | None:
    """Give the values that a ``not`` names, if it does nothing else."""
    if not isinstance(schema, dict):
        return None
    words = meaning(schema, "#")
    if words.keys() == {"const"}:
        return [words["const"]]
    if words.keys() == {"enum"} and isinstance(words["enum"], list):
        return words["enum"]
    return None


def _join(name: str, first: Schema, second: Schema, pointer: str) -> Any:
    values = (first[name], second[name])
    if name in _MEMBERS:
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


def _without_excepted(schema: dict[str, Any], pointer: str) -> dict[str, Any]:
    """Take single values that are not allowed out of those that are."""
    if EXCEPT not in schema or not schema.keys() & {"enum", "const"}:
        return schema
    excepted = {value_key(value) for value in schema[EXCEPT]}
    kept = {name: value for name, value in schema.items() if name != EXCEPT}
    if "const" in kept and value_key(kept["const"]) in excepted:
        raise Unsatisfiable(f"{pointer}/const", "is combined with its own exclusion")
    if isinstance(kept.get("enum"), list):
        kept["enum"] = [value for value in kept["enum"] if value_key(value) not in excepted]
        if not kept["enum"]:
            raise Unsatisfiable(f"{pointer}/enum", "is combined with the exclusion of its values")
    return kept


def _refuse_impossible(schema: Schema, pointer: str) -> None:
    """Refuse what requires a property that can have no value."""
    properties = read_object(schema, "properties", pointer)
    for name in read_required(schema, pointer):
        if properties.get(name, True) is False:
            raise Unsatisfiable(f"{pointer}/required", "names a property that no value fits")


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
    known = {value_key(value) for value in lists[1]}
    return [value for value in lists[0] if value_key(value) in known]


def _join_consts(first: Schema, second: Schema, pointer: str) -> Any:
    if value_key(first["const"]) != value_key(second["const"]):
        raise Unsatisfiable(f"{pointer}/const", "is combined with another constant")
    return first["const"]


def _join_steps(first: Schema, second: Schema, pointer: str) -> Any:
    """Give the least common multiple of two ``multipleOf``."""
    steps = [as_fraction(read_step(part, pointer) or Decimal(1)) for part in (first, second)]
    scale = max(decimals for _, decimals in steps)
    common = lcm(*(units * 10 ** (scale - decimals) for units, decimals in steps))
    if common >= _MAX_STEP:
        raise Refusal(f"{pointer}/multipleOf", "has too many digits together with another one")
    units, decimals = as_fraction(Decimal(common).scaleb(-scale))
    return float(Decimal(units).scaleb(-decimals)) if decimals else units


def _both(name: str) -> Callable[[Schema, Schema, str], Any]:
    def join(first: Schema, second: Schema, _pointer: str) -> Any:
        return {"allOf": [first[name], second[name]]}

    return join


def _join_members(name: str, first: Schema, second: Schema, pointer: str) -> dict[str, Any]:
    """Join properties, or patterns of them; where one side does not name what the other does, its
    additionalProperties hold.
    """
    sides = [
        (read_object(schema, name, pointer), schema.get("additionalProperties", True))
        for schema in (first, second)
    ]
    (one, others_of_one), (other, others_of_other) = sides
    return {
        key: _join_schemas(one.get(key, others_of_one), other.get(key, others_of_other), pointer)
        for key in dict.fromkeys((*one, *other))
    }


def _join_schemas(first: Any, second: Any, pointer: str) -> Any:
    """Give a schema that allows what both do; False where it is seen at once that nothing is."""
    if first is True or second is True:
        return second if first is True else first
    if first is False or second is False:
        return False
    if json_text(first) == json_text(second):
        return first
    if _is_simple(first, pointer) and _is_simple(second, pointer):
        try:
            return _join_simple(first, second, pointer)
        except Unsatisfiable:
            return False
    return {"allOf": [first, second]}


def _is_simple(schema: Any, pointer: str) -> bool:
    """Tell whether a schema has nothing but types, values, and values that are excluded."""
    if not isinstance(schema, dict):
        return False
    words = meaning(schema, pointer)
    return words.keys() <= _SIMPLE and (
        "not" not in words or excluded_values(words["not"]) is not None
    )


def _join_simple(first: Schema, second: Schema, pointer: str) -> dict[str, Any]:
    parts = []
    for schema in (first, second):
        words = meaning(schema, pointer)
        excluded = excluded_values(words.pop("not", {}))
        parts.append(words | ({EXCEPT: excluded} if excluded else {}))
    joined = merge(parts[0], parts[1], pointer)
    excluded = joined.pop(EXCEPT, [])
    if isinstance(joined.get("enum"), list) and "type" in joined:
        types = read_types(joined, pointer)
        joined["enum"] = [one for one in joined["enum"] if set(kinds_of(one)) & set(types)]
        if not joined["enum"]:
            raise Unsatisfiable(f"{pointer}/enum", "has no value of the right type")
    return joined | ({"not": {"enum": excluded}} if excluded else {})


_JOINS: dict[str, Callable[[Schema, Schema, str], Any]] = {
    "type": _join_types,
    "required": _join_required,
    "enum": _join_enums,
    "const": _join_consts,
    "items": _both("items"),
    "additionalProperties": _both("additionalProperties"),
    "propertyNames": _both("propertyNames"),
    "multipleOf": _join_steps,
    APART: lambda first, second, _: first[APART] + second[APART],
    EXCEPT: lambda first, second, _: first[EXCEPT] + second[EXCEPT],
    "uniqueItems": lambda first, second, _: first["uniqueItems"] or second["uniqueItems"],
}
