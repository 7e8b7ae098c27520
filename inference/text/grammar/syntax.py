"""Which rules does the text of a grammar hold? Its errors name a position.

The language is llama.cpp's GBNF: literals, classes, groups, ``.``, names, tokens (``<[12]>``,
``<|end|>``, ``!<[12]>``), and ``* + ? {m,n}`` behind any of them.
"""

import re
from typing import NoReturn

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar.nodes import (
    UNICODE,
    Chars,
    Choice,
    Node,
    Ranges,
    Repeat,
    Rule,
    Sequence,
    Text,
    Token,
    complement,
    intersect,
)

MAX_BYTES = 64 * 1024
MAX_DEPTH = 64
MAX_REPEAT = 2000
MAX_RULES = 2000

_NAME = re.compile(r"[A-Za-z0-9-]+")
_SPACES = re.compile(r"[ \t]*(?:#[^\r\n]*)?")
_BLANKS = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_ESCAPE = r'\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[tnr\\"\[\]])'
_LITERAL = re.compile(rf'"((?:[^"\\]|{_ESCAPE})*+)"')
_CLASS = re.compile(rf"\[(\^?)((?:[^\]\\]|{_ESCAPE})*+)\]")
_CHAR = re.compile(rf"{_ESCAPE}|.", re.DOTALL)
_TOKEN = re.compile(r"(!?)<(?:\[([0-9]{1,9})\]|([^<>\s]+))>")
_REPEAT = re.compile(r"\{[ \t]*([0-9]+)[ \t]*(,?)[ \t]*([0-9]*)[ \t]*\}")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r"}
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def refuse(what: str, at: int) -> NoReturn:
    """Raise the error of a grammar that is wrong at a position."""
    raise EngineError(
        ErrorCode.INVALID_GRAMMAR, f"{what}, at position {at} of the grammar.", param="grammar"
    )


def parse_rules(text: str) -> dict[str, Node]:
    """Give the rules by name; raises EngineError INVALID_GRAMMAR."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise EngineError(
            ErrorCode.INVALID_GRAMMAR,
            f"The grammar is larger than {MAX_BYTES} bytes.",
            param="grammar",
        )
    if "\0" in text:
        refuse("A NUL character", text.index("\0"))
    return _Parser(text).parse()


class _Parser:
    """Reads a grammar once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._rules: dict[str, Node] = {}

    def parse(self) -> dict[str, Node]:
        self._take(_BLANKS)
        while self._at < len(self._text):
            self._rule()
        return self._rules

    def _rule(self) -> None:
        start = self._at
        name = self._take(_NAME)
        if name is None:
            refuse("A rule's name is missing", start)
        self._take(_SPACES)
        if not self._text.startswith("::=", self._at):
            refuse("'::=' is missing", self._at)
        self._at += 3
        self._take(_BLANKS)
        if self._at >= len(self._text):
            refuse("The rule is empty", start)
        self._rules[name.group()] = self._choice(0)
        if len(self._rules) > MAX_RULES:
            refuse(f"There are more than {MAX_RULES} rules", start)
        if self._peek() not in ("", "\r", "\n"):
            refuse("Groups do not match", self._at)
        self._take(_BLANKS)

    def _choice(self, depth: int) -> Node:
        """Read alternatives up to what closes them: ')', or the end of the line."""
        options = [self._sequence(depth)]
        while self._peek() == "|":
            self._at += 1
            self._take(_BLANKS)
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while True:
            self._take(_BLANKS if depth else _SPACES)
            char = self._peek()
            if char in ("", "|", ")", "\r", "\n"):
                return parts[0] if len(parts) == 1 else Sequence(tuple(parts))
            if char in _SIGNS or char == "{":
                if not parts or parts[-1] == Text(""):
                    refuse("There is nothing to repeat", self._at)
                parts[-1] = self._repeat(parts[-1], char)
            else:
                parts.append(self._item(char, depth))

    def _item(self, char: str, depth: int) -> Node:
        start = self._at
        if char == "(":
            return self._group(depth + 1)
        if char == ".":
            self._at += 1
            return Chars(UNICODE)
        if char == '"':
            literal = self._take(_LITERAL) or refuse("A literal is malformed", start)
            return self._literal(_CHAR.findall(literal[1]), start)
        if char == "[":
            found = self._take(_CLASS) or refuse("A class is malformed", start)
            return self._class(found, start)
        if char in "<!":
            token = self._take(_TOKEN) or refuse("A token is malformed", start)
            return Token(int(token[2] or -1), token[3] or "", bool(token[1]))
        name = self._take(_NAME) or refuse("Malformed", start)
        return Rule(name.group(), start)

    def _group(self, depth: int) -> Node:
        start = self._at
        if depth > MAX_DEPTH:
            refuse(f"Groups nest deeper than {MAX_DEPTH}", start)
        self._at += 1
        node = self._choice(depth)
        if self._peek() != ")":
            refuse("A group is never closed", start)
        self._at += 1
        return node

    def _literal(self, chars: list[str], start: int) -> Node:
        codes = [_code(char) for char in chars]
        if not all(intersect(((code, code),), UNICODE) for code in codes):
            refuse("A literal has an escape of no character", start)
        return Text("".join(map(chr, codes)))

    def _class(self, found: re.Match[str], start: int) -> Node:
        chars = _CHAR.findall(found[2])
        ranges: list[tuple[int, int]] = []
        at = 0
        while at < len(chars):
            low = high = _code(chars[at])
            if chars[at + 1 : at + 2] == ["-"] and at + 2 < len(chars):
                high = _code(chars[at + 2])
                at += 2
            if low > high:
                refuse("A range of a class is in the wrong order", start)
            ranges.append((low, high))
            at += 1
        usable: Ranges = complement(tuple(ranges)) if found[1] else tuple(ranges)
        if not intersect(usable, UNICODE):
            refuse("A class matches no character", start)
        return Chars(intersect(usable, UNICODE))

    def _repeat(self, part: Node, sign: str) -> Node:
        start = self._at
        if sign != "{":
            self._at += 1
            return Repeat(part, *_SIGNS[sign])
        found = self._take(_REPEAT) or refuse("A repetition is malformed", start)
        least, comma, most = found.groups()
        if any(len(number) > 6 or int(number or 0) > MAX_REPEAT for number in (least, most)):
            refuse(f"A repetition is above {MAX_REPEAT}", start)
        if most and int(most) < int(least):
            refuse("A repetition's bounds are in the wrong order", start)
        return Repeat(part, int(least), int(most) if most else None if comma else int(least))

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found


def _code(char: str) -> int:
    if len(char) == 1:
        return ord(char)
    if char[1] in "xuU":
        return int(char[2:], 16)
    return ord(_CONTROLS.get(char[1], char[1]))
