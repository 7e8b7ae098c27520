"""The parts of a grammar as text: rules, literals and sets of characters inside JSON strings.

An *item* is text that a repetition may follow: a rule's name, a literal, a class or a group.
"""

import json
import re

from inference.text.json_schema.refusal import Refusal

# What the engine's check and llama.cpp itself allow.
MAX_BYTES = 64 * 1024
MAX_RULES = 2000
MAX_REPEAT = 2000
MAX_TOTAL_REPEAT = 40_000

Ranges = tuple[tuple[int, int], ...]
# Everything but control characters and the halves of surrogate pairs.
PRINTABLE: Ranges = ((0x20, 0x7E), (0xA0, 0xD7FF), (0xE000, 0x10FFFF))
_ESCAPED: Ranges = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0xD800, 0xDFFF))

# At most one blank anywhere, so that a model cannot go on with blanks for ever.
BLANK = "blank"
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
_NAME_OR_REPEAT = re.compile(
    r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{(\d+)(?:,(\d*))?\}|([A-Za-z][A-Za-z0-9-]*)'
)


class Grammar:
    """The rules so far; equal bodies share a rule. Refuses to grow beyond what the engine takes."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._num_bytes = 0

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
        self._num_bytes += len(body.encode()) + len(name) + 6
        if self._num_bytes > 4 * MAX_BYTES:
            raise _too_large()

    def repeat(self, item: str, least: int, most: int | None) -> str:
        """Give an item repeated; repeated items are rules, as llama.cpp copies what they hold."""
        if (least, most) == (1, 1):
            return item
        if most == 0:
            return '""'
        if max(least, most or 0) > MAX_REPEAT:
            raise Refusal("#", f"repeats something more than {MAX_REPEAT} times")
        signs = {(0, 1): "?", (0, None): "*", (1, None): "+"}
        if (least, most) in signs:
            return self.define(f"{item}{signs[least, most]}")
        bounds = str(least) if least == most else f"{least},{'' if most is None else most}"
        return self.define(f"{self.define(item)}{{{bounds}}}")

    def text(self, root: str) -> str:
        """Give the whole grammar: the rules that can be reached from the root."""
        rules = {**_COMMON, **self._rules, "root": root}
        found, waiting, total_repeat = ["root"], ["root"], 0
        while waiting:
            for match in _NAME_OR_REPEAT.finditer(rules[waiting.pop()]):
                least, most, name = match.groups()
                total_repeat += int(most or least or 0)
                if name and name not in found:
                    found.append(name)
                    waiting.append(name)
        if total_repeat > MAX_TOTAL_REPEAT:
            raise Refusal("#", f"has lengths that add up to more than {MAX_TOTAL_REPEAT}")
        text = "".join(f"{name} ::= {rules[name]}\n" for name in found)
        if len(text.encode()) > MAX_BYTES:
            raise _too_large()
        return text


def literal(text: str) -> str:
    """Give the literal that matches a text."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else _spell(ord(c)) for c in quoted) + '"'


def json_text(value: object) -> str:
    """Give a value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def one_of(items: list[str]) -> str:
    """Give an item that is one of these."""
    unique = list(dict.fromkeys(items))
    return unique[0] if len(unique) == 1 else "(" + " | ".join(unique) + ")"


def char_class(ranges: Ranges) -> str:
    """Give a class that matches these characters themselves."""
    spelled = (
        _spell(low) if low == high else f"{_spell(low)}-{_spell(high)}" for low, high in ranges
    )
    return "[" + "".join(spelled) + "]"


def string_chars(ranges: Ranges) -> str:
    """Give an item that matches one of these characters as it is written inside a JSON string."""
    escaped = [
        literal(json_text(chr(code))[1:-1])
        for low, high in intersect(ranges, _ESCAPED[:3])
        for code in range(low, high + 1)
    ]
    plain = intersect(ranges, complement(_ESCAPED))
    return one_of(([char_class(plain)] if plain else []) + escaped)


def normalize(ranges: Ranges) -> Ranges:
    """Sort ranges and join those that touch."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


def complement(ranges: Ranges) -> Ranges:
    """Give all other code points."""
    gaps, start = [], 0
    for low, high in normalize(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    return tuple(gaps) + (((start, 0x10FFFF),) if start <= 0x10FFFF else ())


def intersect(first: Ranges, second: Ranges) -> Ranges:
    """Give the code points in both."""
    return tuple(
        (max(low, other_low), min(high, other_high))
        for low, high in normalize(first)
        for other_low, other_high in normalize(second)
        if max(low, other_low) <= min(high, other_high)
    )


def _too_large() -> Refusal:
    return Refusal("#", f"needs a grammar of more than {MAX_BYTES} bytes")


def _spell(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    if code < 0x80:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
