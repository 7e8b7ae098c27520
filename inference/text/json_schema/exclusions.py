"""Single values that a schema excludes (by ``not``), as other words about what is left."""

from decimal import Decimal
from itertools import pairwise
from typing import Any

from inference.text.json_schema.keywords import EXCEPT, read_count
from inference.text.json_schema.numbers import Bounds
from inference.text.json_schema.refusal import Refusal
from inference.text.json_schema.values import kinds_of

Plain = dict[str, Any]
_MAX_CUTS = 64


def excluded(schema: Plain, kind: str) -> list[Any]:
    """Give the values of a type that are excluded."""
    return [value for value in schema.get(EXCEPT, ()) if kind in kinds_of(value)]


def ranges_without(bounds: Bounds, schema: Plain) -> list[Bounds]:
    """Give the ranges that are left of one."""
    cuts = sorted({Decimal(str(value)) for value in excluded(schema, "number")})
    cuts = [cut for cut in cuts if bounds.allow(cut)]
    if len(cuts) > _MAX_CUTS:
        raise Refusal(f"{bounds.pointer}/not", f"excludes more than {_MAX_CUTS} numbers")
    edges = [bounds.low, *((cut, True) for cut in cuts), bounds.high]
    return [Bounds(low, high, bounds.pointer) for low, high in pairwise(edges)]


def without_empty(schema: Plain, kind: str, pointer: str) -> Plain:
    """Give a schema of objects or arrays that have a member, if the empty one is excluded."""
    values = excluded(schema, kind)
    if any(values):
        raise Refusal(f"{pointer}/not", f"excludes an {kind} with members, which is not supported")
    name = "minProperties" if kind == "object" else "minItems"
    return schema | {name: max(1, read_count(schema, name, pointer) or 0)} if values else schema
