"""Arguments that are written one by one, texts among them without quotes (as Qwen3-Coder does)."""

from collections.abc import Iterator
from typing import Any

from inference.text.grammar.nodes import (
    UNICODE,
    Chars,
    Choice,
    Node,
    Ranges,
    Repeat,
    Sequence,
    complement,
    intersect,
)
from inference.text.grammar.writer import char_class, literal, one_of, write_item
from inference.text.json_schema.convert import Converter
from inference.text.json_schema.gbnf import Grammar
from inference.text.json_schema.keywords import TYPES, meaning, read_bounds, read_required
from inference.text.json_schema.references import join, resolve
from inference.text.json_schema.refusal import Refusal
from inference.text.json_schema.strings import pattern_of
from inference.text.json_schema.tries import any_text
from inference.text.json_schema.values import kinds_of, read_values
from inference.text.tool_grammar.syntax import ParameterCall
from inference.text.tool_grammar.until import text_until

_MAX_NESTING = 16
OBJECT_WORDS = frozenset({"type", "properties", "required", "additionalProperties"})
_TEXT_WORDS = frozenset({"type", "enum", "const", "pattern", "format", "minLength", "maxLength"})


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
    return {kind for option in _options(schema, root, "#", 0) for kind in _kinds(option)}


class ParameterWriter:
    """Writes the arguments of calls in one syntax."""

    def __init__(self, grammar: Grammar, form: ParameterCall) -> None:
        self._grammar, self._form = grammar, form
        self._any_text = text_until(grammar, form.after_value)
        self._end = literal(form.after_value)

    def unenforced(self) -> str:
        """Give an item that matches any arguments."""
        form = self._form
        key = char_class(_without(form.after_key[:1] + "\n"))
        item = f"{literal(form.before_key)} {key}+ {literal(form.after_key)} {self._any_text}"
        return self._grammar.define(f"({item})*")

    def arguments(self, root: Any) -> str:
        """Give an item that matches the arguments a schema describes; raises Refusal."""
        if root is None:
            return '""'
        converter = Converter(root, self._grammar)
        schema, place = follow(root, root, "#", 0)
        words = meaning(schema, place)
        for name in words.keys() - OBJECT_WORDS:
            problem = "is not supported where a model writes arguments one by one"
            raise Refusal(f"{place}/{name}", problem)
        properties = words.get("properties", {})
        if not isinstance(properties, dict):
            raise Refusal(f"{place}/properties", "must be an object")
        required = read_required(words, place)
        items = []
        for name, part in {**dict.fromkeys(required, True), **properties}.items():
            if part is False and name not in required:
                continue
            pointer = join(place, "properties", name) if name in properties else place
            item = self._argument(converter, name, part, root, pointer)
            items.append(item if name in required else f"{item}?")
        return " ".join(items) or '""'

    def _argument(
        self, converter: Converter, name: str, schema: Any, root: Any, pointer: str
    ) -> str:
        form = self._form
        if form.after_key[:1] in name or "\n" in name:
            raise Refusal(pointer, "has a name that cannot be written as that of an argument")
        if writes_text(schema, root):
            options = _options(schema, root, pointer, 0)
            value = one_of([self._text(option, pointer) for option in options])
        else:
            value = f"{converter.item(pointer)} {self._end}"
        key = literal(form.before_key + name + form.after_key)
        return self._grammar.define(f"{key} {value}")

    def _text(self, schema: dict[str, Any], pointer: str) -> str:
        """Give an item that matches the texts of a plain schema, and what ends them."""
        words = meaning(schema, pointer)
        for name in words.keys() - _TEXT_WORDS - {"nullable"}:
            problem = "is not supported where a model writes arguments one by one"
            raise Refusal(f"{pointer}/{name}", problem)
        if "string" not in _kinds(schema):
            return f'"null" {self._end}'
        if "enum" in words or "const" in words:
            texts = ["null" if value is None else value for value in read_values(words, pointer)]
            return f"{any_text(self._grammar, texts)} {self._end}"
        least, most = read_bounds(words, "minLength", "maxLength", pointer)
        pattern = pattern_of(words, pointer)
        if pattern is None and (least, most) == (0, None):
            return self._any_text
        if pattern is None:
            chars = char_class(_without(self._form.after_value[:1]))
            return f"{self._grammar.repeat(chars, least, most)} {self._end}"
        return f"{write_item(self._cut(pattern, pointer))} {self._end}"

    def _cut(self, node: Node, pointer: str) -> Node:
        """Take the first character of what ends a value out of a pattern."""
        match node:
            case Chars(ranges):
                kept = intersect(ranges, _without(self._form.after_value[:1]))
                if not kept:
                    raise Refusal(pointer, "has a pattern that may match what ends an argument")
                return Chars(kept)
            case Sequence(parts):
                return Sequence(tuple(self._cut(part, pointer) for part in parts))
            case Choice(options):
                return Choice(tuple(self._cut(option, pointer) for option in options))
            case Repeat(part, least, most):
                return Repeat(self._cut(part, pointer), least, most)
        raise ValueError(node)


def _options(schema: Any, root: Any, pointer: str, nesting: int) -> Iterator[dict[str, Any]]:
    """Give the alternatives of a schema, as far as ``$ref``, ``anyOf`` and ``oneOf`` spell them."""
    schema, pointer = follow(schema, root, pointer, nesting)
    for name in ("anyOf", "oneOf"):
        if meaning(schema, pointer).keys() == {name} and isinstance(schema[name], list):
            for option in schema[name]:
                yield from _options(option, root, pointer, nesting + 1)
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


def _kinds(schema: dict[str, Any]) -> set[str]:
    """Give the types that a plain schema allows, or all."""
    words = meaning(schema, "#")
    if "type" in words:
        named = [words["type"]] if isinstance(words["type"], str) else words["type"]
        kinds = set(map(str, named)) if isinstance(named, list) else set(TYPES)
        return kinds | ({"null"} if words.get("nullable") is True else set())
    if words.keys() & {"enum", "const"}:
        return {kind for value in read_values(words, "#") for kind in kinds_of(value)}
    return set(TYPES)


def _without(chars: str) -> Ranges:
    return intersect(UNICODE, complement(tuple((ord(char), ord(char)) for char in chars)))
