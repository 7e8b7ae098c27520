"""What is to be done, one thing at a time: first told, then perhaps run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """A change: what it does, in words, and how. ``place`` is where the file asks for it."""

    words: str
    place: str
    run: Callable[[], None]


def list_changes(thing: Any, wanted: dict[str, Any]) -> dict[str, str]:
    """Give the fields of a row that are to change, each with what it was and will be."""
    changes: dict[str, str] = {}
    for name, value in wanted.items():
        before = getattr(thing, name)
        if before != value:
            changes[name] = f"{name} {_show(before)} -> {_show(value)}"
    return changes


def _show(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
