"""The parts of a grammar as text: rules, literals and sets of characters inside JSON strings.

An *item* is text that a repetition may follow: a rule's name, a literal, a class or a group.
"""

import json
import re
import time

from inference.text.grammar.nodes import Ranges, complement, intersect
from inference.text.grammar.syntax import MAX_BYTES, MAX_REPEAT, MAX_RULES
from inference.text.grammar.writer import char_class, literal, one_of, repetition
from inference.text.json_schema.refusal import Refusal

_ESCAPED: Ranges = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0xD800, 0xDFFF))

# At most one blank anywhere, so that a model cannot go on with blanks for ever.
BLANK = "blank"
COMMA = f'"," {BLANK}'
_COMMON = {
    BLANK: r'" " | "\n" | ""',
    "char": r'[\x20-\x21\x23-\x5B\x5D-\x7E\u00A0-\uD7FF\uE000-\U0010FFFF] | "\\" escape',
    # No half of a surrogate pair: alone it is no character.
    "escape": r'["\\/bfnrt] | "u" ([0-9abcefABCEF] [0-9a-fA-F] | [dD] [0-7]) hex hex',
    "hex": "[0-9a-fA-F]",
    "string": r'"\"" char* "\""',
    "integer": r'"-"? ("0" | [1-9] [0-9]{0,15})',
    "number": r'integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "value": "object | array | string | number | boolean | null",
    "object": r'"{" blank (pair ("," blank pair)*)? "}"',
    "pair": 'string ":" blank value',
    "array": '"[" blank (value ("," blank value)*)? "]"',
}
# About what a second allows; the clock itself is a backstop.
_MAX_COST = 20_000
_MAX_SECONDS = 2.0
_TEXT_OR_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|([A-Za-z][A-Za-z0-9-]*)')


class Grammar:
    """The rules so far; equal bodies share a rule. Refuses to grow beyond what the engine takes.

    All that makes it pays for the work with ``spend``.
    """

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self.num_bytes = 0
        self._cost = 0
        self._deadline = time.thread_time() + _MAX_SECONDS

    def spend(self, cost: int = 1) -> None:
        """Count work; raises Refusal where it is too much."""
        self._cost += cost
        if self._cost > _MAX_COST or time.thread_time() > self._deadline:
            raise Refusal("#", "is too complex")

    def define(self, body: str) -> str:
        """Give the item of a rule with this body."""
        if body in self._names or body in self._rules or body in _COMMON:
            return self._names.get(body, body)
        name = self.reserve()
        self.fill(name, body)
        return name

    def reserve(self) -> str:
        """Give a new rule's name, to be filled later: rules may refer to themselves."""
        name = f"r{len(self._rules)}"
        self._rules[name] = ""
        if len(self._rules) + len(_COMMON) >= MAX_RULES:
            raise Refusal("#", f"needs a grammar of more than {MAX_RULES} rules")
        return name

    def fill(self, name: str, body: str) -> None:
        """Give a reserved rule its body."""
        self._rules[name] = body
        self._names.setdefault(body, name)
        self.num_bytes += len(body.encode()) + len(name) + 6
        if self.num_bytes > 4 * MAX_BYTES:
            raise _too_large()

    def repeat(self, item: str, least: int, most: int | None) -> str:
        """Give an item repeated."""
        if (least, most) == (1, 1):
            return item
        if most == 0:
            return '""'
        if max(least, most or 0) <= MAX_REPEAT:
            return self.define(item + repetition(least, most))
        many = self.define(item + repetition(MAX_REPEAT, MAX_REPEAT))
        if least >= MAX_REPEAT:
            room = None if most is None else most - MAX_REPEAT
            return self.define(f"{many} {self.repeat(item, least - MAX_REPEAT, room)}")
        # Either the text ends before there are so many, or it has so many and then the rest.
        assert most is not None
        few = item + repetition(least, MAX_REPEAT - 1)
        return self.define(f"{few} | {many} {self.repeat(item, 0, most - MAX_REPEAT)}")

    def text(self, root: str) -> str:
        """Give the whole grammar: the rules that can be reached from the root."""
        rules = {**_COMMON, **self._rules, "root": root}
        found, waiting = ["root"], ["root"]
        while waiting:
            for match in _TEXT_OR_NAME.finditer(rules[waiting.pop()]):
                name = match[1]
                if name and name not in found:
                    found.append(name)
                    waiting.append(name)
        text = "".join(f"{name} ::= {rules[name]}\n" for name in found)
        if len(text.encode()) > MAX_BYTES:
            raise _too_large()
        return text


def json_text(value: object) -> str:
    """Give a value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def string_chars(ranges: Ranges) -> str:
    """Give an item that matches one of these characters as it is written inside a JSON string."""
    escaped = [
        literal(json_text(chr(code))[1:-1])
        for low, high in intersect(ranges, _ESCAPED[:3])
        for code in range(low, high + 1)
    ]
    plain = intersect(ranges, complement(_ESCAPED))
    return one_of(([char_class(plain)] if plain else []) + escaped)


def _too_large() -> Refusal:
    return Refusal("#", f"needs a grammar of more than {MAX_BYTES} bytes")
