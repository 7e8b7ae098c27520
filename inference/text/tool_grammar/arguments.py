"""Which arguments does a schema describe, and what may each be?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inference.text.json_schema.keywords import TYPES, meaning, read_required
from inference.text.json_schema.references import join, resolve
from inference.text.json_schema.refusal import Refusal
from inference.text.json_schema.values import kinds_of, read_values

_MAX_NESTING = 16
_OBJECT_WORDS = frozenset({"type", "properties", "required", "additionalProperties"})


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a function, and where its schema stands in that of all."""

    name: str
    schema: Any
    pointer: str
    is_required: bool


def read_arguments(root: Any, way: str) -> list[Argument]:
    """List the arguments that a schema describes; raises Refusal.

    ``way`` says how a model writes them, for whoever reads why a schema is refused.
    """
    schema, place = follow(root, root, "#", 0)
    words = meaning(schema, place)
    for name in words.keys() - _OBJECT_WORDS:
        raise Refusal(f"{place}/{name}", f"is not supported where a model writes {way}")
    properties = words.get("properties", {})
    if not isinstance(properties, dict):
        raise Refusal(f"{place}/properties", "must be an object")
    required = read_required(words, place)
    return [
        Argument(
            name,
            part,
            join(place, "properties", name) if name in properties else place,
            name in required,
        )
        for name, part in {**dict.fromkeys(required, True), **properties}.items()
        if part is not False or name in required
    ]


def writes_text(schema: Any, root: Any) -> bool:
    """Tell whether values of a schema within a root are written as plain text, without quotes.

    They are where the schema allows texts, and nothing else but null, which is then the text null.
    """
    try:
        kinds = kinds_within(schema, root)
    except Refusal:
        return False
    return "string" in kinds and kinds <= {"string", "null"}


def kinds_within(schema: Any, root: Any) -> set[str]:
    """Give the types that a schema within a root allows; raises Refusal."""
    return {kind for option in options_of(schema, root, "#", 0) for kind in types_of(option)}


def options_of(schema: Any, root: Any, pointer: str, nesting: int) -> Iterator[dict[str, Any]]:
    """Give the alternatives of a schema, as far as ``$ref``, ``anyOf`` and ``oneOf`` spell them."""
    schema, pointer = follow(schema, root, pointer, nesting)
    for name in ("anyOf", "oneOf"):
        if meaning(schema, pointer).keys() == {name} and isinstance(schema[name], list):
            for option in schema[name]:
                yield from options_of(option, root, pointer, nesting + 1)
            return
    yield schema


def follow(schema: Any, root: Any, pointer: str, nesting: int) -> tuple[dict[str, Any], str]:
    """Give the schema that a reference means, and where it is."""
    for _ in range(nesting, _MAX_NESTING):
        if schema is True:
            return {}, pointer
        if not isinstance(schema, dict):
            raise Refusal(pointer, "must be a schema: an object, true or false")
        words = meaning(schema, pointer)
        if words.keys() == {"$ref"}:
            schema, pointer = resolve(root, words["$ref"], pointer), words["$ref"]
        elif words.keys() == {"allOf"} and isinstance(schema["allOf"], list):
            if len(schema["allOf"]) != 1:
                return schema, pointer
            schema, pointer = schema["allOf"][0], f"{pointer}/allOf/0"
        else:
            return schema, pointer
    raise Refusal(pointer, f"refers deeper than {_MAX_NESTING} levels")


def types_of(schema: dict[str, Any]) -> set[str]:
    """Give the types that a plain schema allows, or all."""
    words = meaning(schema, "#")
    if "type" in words:
        named = [words["type"]] if isinstance(words["type"], str) else words["type"]
        kinds = set(map(str, named)) if isinstance(named, list) else set(TYPES)
        return kinds | ({"null"} if words.get("nullable") is True else set())
    if words.keys() & {"enum", "const"}:
        return {kind for value in read_values(words, "#") for kind in kinds_of(value)}
    return set(TYPES)
