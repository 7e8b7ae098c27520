"""Arguments that are written one by one, texts among them without quotes (as Qwen3-Coder does)."""

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
from inference.text.json_schema.keywords import meaning, read_bounds
from inference.text.json_schema.refusal import Refusal
from inference.text.json_schema.strings import pattern_of
from inference.text.json_schema.tries import any_text
from inference.text.json_schema.values import read_values
from inference.text.tool_grammar.arguments import (
    Argument,
    options_of,
    read_arguments,
    types_of,
    writes_text,
)
from inference.text.tool_grammar.syntax import ParameterCall
from inference.text.tool_grammar.until import text_until

_WAY = "arguments one by one"
_TEXT_WORDS = frozenset({"type", "enum", "const", "pattern", "format", "minLength", "maxLength"})


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
        items = []
        for argument in read_arguments(root, _WAY):
            item = self._item(converter, argument, root)
            items.append(item if argument.is_required else f"{item}?")
        return " ".join(items) or '""'

    def _item(self, converter: Converter, argument: Argument, root: Any) -> str:
        form, name, pointer = self._form, argument.name, argument.pointer
        if form.after_key[:1] in name or "\n" in name:
            raise Refusal(pointer, "has a name that cannot be written as that of an argument")
        if writes_text(argument.schema, root):
            options = options_of(argument.schema, root, pointer, 0)
            value = one_of([self._text(option, pointer) for option in options])
        else:
            value = f"{converter.item(pointer)} {self._end}"
        key = literal(form.before_key + name + form.after_key)
        return self._grammar.define(f"{key} {value}")

    def _text(self, schema: dict[str, Any], pointer: str) -> str:
        """Give an item that matches the texts of a plain schema, and what ends them."""
        words = meaning(schema, pointer)
        for name in words.keys() - _TEXT_WORDS - {"nullable"}:
            raise Refusal(f"{pointer}/{name}", f"is not supported where a model writes {_WAY}")
        if "string" not in types_of(schema):
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


def _without(chars: str) -> Ranges:
    return intersect(UNICODE, complement(tuple((ord(char), ord(char)) for char in chars)))
