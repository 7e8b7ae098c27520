"""A schema without what cannot be enforced of it, for functions that need not be strict."""

from collections.abc import Iterator
from typing import Any

from inference.text.json_schema.references import steps_of

# Below these words lie schemas by name or number, or one schema: what any value may stand for.
_BY_NAME = frozenset({"properties", "$defs", "definitions", "prefixItems"})
_ALONE = frozenset({"items", "additionalProperties"})


def loosen(schema: Any, pointer: str) -> Any:
    """Give a schema that allows any value at the innermost part that a pointer goes through.

    None, where there is no such part: the whole would have to allow anything.
    """
    path = max(_parts(steps_of(pointer)), key=len, default=())
    return _replaced(schema, path) if path else None


def _parts(steps: list[str]) -> Iterator[tuple[str, ...]]:
    """Give the paths of all parts that a path goes through, as far as they are plainly schemas."""
    at = 0
    while at < len(steps):
        at += 2 if steps[at] in _BY_NAME else 1 if steps[at] in _ALONE else len(steps) + 1
        if at <= len(steps):
            yield tuple(steps[:at])


def _replaced(schema: Any, path: tuple[str, ...]) -> Any:
    """Give a copy with the part at a path replaced; None where there is none."""
    if not path:
        return {}
    if isinstance(schema, list) and path[0].isdigit() and int(path[0]) < len(schema):
        part = _replaced(schema[int(path[0])], path[1:])
        at = int(path[0])
        return None if part is None else [*schema[:at], part, *schema[at + 1 :]]
    if not isinstance(schema, dict) or path[0] not in schema:
        return None
    part = _replaced(schema[path[0]], path[1:])
    return None if part is None else schema | {path[0]: part}
