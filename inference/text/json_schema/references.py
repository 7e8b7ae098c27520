"""Where a ``$ref`` points within its schema."""

import re
from typing import Any
from urllib.parse import unquote

from inference.text.json_schema.refusal import Refusal

_BAD_ESCAPE = re.compile(r"~(?![01])")


def resolve(root: Any, reference: Any, pointer: str) -> Any:
    """Give the part of the root that a reference names; only ``#`` and ``#/…`` are supported."""
    place = f"{pointer}/$ref"
    if not isinstance(reference, str):
        raise Refusal(place, "must be a string")
    if reference != "#" and not reference.startswith("#/"):
        raise Refusal(place, "must point into the schema itself, as #/$defs/name does")
    found = root
    for step in unquote(reference[2:]).split("/") if reference != "#" else ():
        found = _enter(found, step)
        if found is None:
            raise Refusal(place, "points to nothing")
    return found


def _enter(value: Any, step: str) -> Any:
    if _BAD_ESCAPE.search(step):
        return None
    name = step.replace("~1", "/").replace("~0", "~")
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isascii() and name.isdigit() and len(name) < 6:
        return value[int(name)] if int(name) < len(value) else None
    return None


def steps_of(pointer: str) -> list[str]:
    """Give the names that a pointer leads through."""
    steps = pointer.split("/")[1:]
    return [step.replace("~1", "/").replace("~0", "~") for step in steps]


def join(pointer: str, *steps: str | int) -> str:
    """Give the pointer of what lies below."""
    words = (str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    return "/".join((pointer, *words))


def find_loop(edges: dict[str, set[str]]) -> str | None:
    """Give a node from which the edges lead back to itself."""
    done: set[str] = set()
    for start in edges:
        path, waiting = [start], [iter(edges[start])]
        while path:
            step = next(waiting[-1], None)
            if step is None:
                done.add(path.pop())
                waiting.pop()
            elif step in path:
                return step
            elif step not in done:
                path.append(step)
                waiting.append(iter(edges.get(step, ())))
    return None
