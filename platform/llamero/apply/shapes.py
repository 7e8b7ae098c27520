"""Read entries of a file into their classes: each field that is wrong is told for itself."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from llamero.apply.mistakes import ApplyError, Mistakes

Entry = TypeVar("Entry", bound=msgspec.Struct)
_NAMES = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "fields with values",
    NoneType: "empty",
}
# What stands for a value that could not be read, while the rest is judged.
_EMPTY: dict[Any, Any] = {str: "", bool: False, list: [], dict: {}}


def read_entry(value: Any, kind: type[Entry], place: str, mistakes: Mistakes) -> Entry:
    """Read an entry; what is wrong with it is noted, and left as if it were not there."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    given = _read_plain(value, dict, place, mistakes)
    for name in [name for name in given if name not in fields]:
        words = f"is no field of this entry; {suggest(str(name), {one: one for one in fields})}"
        mistakes.add(_join(place, name), words)
    found: dict[str, Any] = {}
    for name, field in fields.items():
        if name in given:
            found[name] = _read(given[name], field.type, _join(place, name), mistakes)
        elif field.required:
            mistakes.add(_join(place, name), "is missing")
            found[name] = ""
    return kind(**found)


def suggest(text: str, known: Mapping[str, str]) -> str:
    """Say which name may be meant, or which there are: names by what they may be called."""
    near = get_close_matches(text.lower(), known, n=1, cutoff=0.7)
    if near:
        return f"did you mean {known[near[0]]}?"
    return f"there are {', '.join(sorted(set(known.values())))}"


def check_kind(value: Any, kind: type, place: str) -> None:
    """Raise ApplyError for a value of another kind; the value itself may be huge, or secret."""
    if type(value) is kind or (kind is float and type(value) is int):
        return
    words = f"must be {_NAMES[kind]}, and is {_NAMES.get(type(value), 'something else')}"
    if kind is str and isinstance(value, bool | int | float):
        words += ": write it in quotes"
    raise ApplyError(place, words)


def _read(value: Any, kind: Any, place: str, mistakes: Mistakes) -> Any:
    if isinstance(kind, UnionType):
        if value is None:
            return None
        kind = next(one for one in get_args(kind) if one is not NoneType)
    if get_origin(kind) is list:
        (inner,) = get_args(kind)
        return [
            _read(one, inner, f"{place}[{index}]", mistakes)
            for index, one in enumerate(_read_plain(value, list, place, mistakes))
        ]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return read_entry(value, kind, place, mistakes)
    return _read_plain(value, get_origin(kind) or kind, place, mistakes)


def _read_plain(value: Any, kind: Any, place: str, mistakes: Mistakes) -> Any:
    with mistakes.gathered():
        check_kind(value, kind, place)
        return value
    return _EMPTY[kind]


def _join(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)
