"""Arguments as Python has them: ``city="Oslo", days=3``, in the order of the schema."""

from collections.abc import Sequence
from typing import Any

from inference.text.grammar.writer import literal, one_of
from inference.text.json_schema.convert import Converter
from inference.text.json_schema.gbnf import Grammar
from inference.text.json_schema.refusal import Refusal
from inference.text.tool_grammar.arguments import Argument, follow, kinds_within, read_arguments

_WORDS = {"boolean": ("True", "False"), "null": ("None",)}


class PythonWriter:
    """Writes the arguments of calls; values are JSON's, or True, False or None."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        words = [literal(word) for words in _WORDS.values() for word in words]
        self._any_value = grammar.define(" | ".join([*words, "value"]))

    def unenforced(self) -> str:
        """Give an item that matches any arguments."""
        pair = self._grammar.define(f'[A-Za-z_] [A-Za-z0-9_]* "=" {self._any_value}')
        return self._grammar.define(f'({pair} (", " {pair})*)?')

    def arguments(self, root: Any) -> str:
        """Give an item that matches the arguments a schema describes; raises Refusal."""
        if root is None:
            return '""'
        converter = Converter(root, self._grammar)
        return self._listed(
            [
                (self._pair(converter, argument, root), argument.is_required)
                for argument in read_arguments(root, "Python")
            ]
        )

    def _pair(self, converter: Converter, argument: Argument, root: Any) -> str:
        name, pointer = argument.name, argument.pointer
        if not (name.isidentifier() and name.isascii()):
            raise Refusal(pointer, "has a name that cannot be written as that of an argument")
        return self._grammar.define(
            f"{literal(name + '=')} {self._value(converter, argument.schema, root, pointer)}"
        )

    def _value(self, converter: Converter, schema: Any, root: Any, pointer: str) -> str:
        plain, _ = follow(schema, root, pointer, 0)
        kinds = kinds_within(schema, root)
        if plain.keys() & {"enum", "const"}:
            return converter.item(pointer)
        words = [literal(word) for kind in sorted(kinds & _WORDS.keys()) for word in _WORDS[kind]]
        if kinds <= _WORDS.keys():
            return one_of(words)
        return one_of([*words, converter.item(pointer)])

    def _listed(self, pairs: Sequence[tuple[str, bool]]) -> str:
        """Give an item that matches pairs with commas between them; some may be missing."""
        first = more = '""'
        for pair, is_required in reversed(pairs):
            if is_required:
                first = self._grammar.define(f"{pair} {more}")
                more = self._grammar.define(f'", " {pair} {more}')
            else:
                first = self._grammar.define(f"{pair} {more} | {first}")
                more = self._grammar.define(f'(", " {pair})? {more}')
        return first
