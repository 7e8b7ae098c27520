"""Is a GBNF grammar sound and harmless enough to hand to llama.cpp's own parser?

That parser and its matcher recurse, so a hostile grammar could end the process; and it prints what
it cannot parse to standard error, where texts of clients have no place. So syntax and bounds are
checked here first, without recursion, and errors name a position.
"""

import re
from typing import NoReturn

from inference.protocol.errors import EngineError, ErrorCode

MAX_BYTES = 64 * 1024
MAX_DEPTH = 64
MAX_REPEAT = 2000
MAX_TOTAL_REPEAT = 40_000
MAX_RULES = 2000

_NAME = re.compile(r"[A-Za-z0-9-]+")
_SPACES = re.compile(r"[ \t]*(?:#[^\r\n]*)?")
_BLANKS = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_ESCAPE = r'\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[tnr\\"\[\]])'
_LITERAL = re.compile(rf'"((?:[^"\\]|{_ESCAPE})*+)"')
_CLASS = re.compile(rf"\[\^?((?:[^\]\\]|{_ESCAPE})*+)\]")
_TOKEN = re.compile(r"!?<[^<>\s]+>")
_REPEAT = re.compile(r"\{[ \t]*([0-9]+)[ \t]*(?:,[ \t]*([0-9]*)[ \t]*)?\}")


def check_grammar(text: str) -> None:
    """Refuse a grammar that is unsound, too large, too deep or too repetitive."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise EngineError(
            ErrorCode.INVALID_GRAMMAR, f"The grammar is larger than {MAX_BYTES} bytes."
        )
    _Reader(text).read()


class _Reader:
    """Walks a grammar once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._total_repeat = 0
        self._defined: set[str] = set()
        self._used: dict[str, int] = {}

    def read(self) -> None:
        """Read all rules, then see that those which are used exist."""
        if "\0" in self._text:
            self._refuse("A NUL character", self._text.index("\0"))
        self._skip(_BLANKS)
        while self._at < len(self._text):
            self._read_rule()
        for name, at in {"root": len(self._text), **self._used}.items():
            if name not in self._defined:
                self._refuse(f"No rule is named '{name[:64]}', needed", at)

    def _read_rule(self) -> None:
        start = self._at
        name = self._take(_NAME)
        if name is None:
            self._refuse("A rule's name is missing", start)
        self._defined.add(name.group())
        if len(self._defined) > MAX_RULES:
            self._refuse(f"There are more than {MAX_RULES} rules", start)
        self._skip(_SPACES)
        if not self._text.startswith("::=", self._at):
            self._refuse("'::=' is missing", self._at)
        self._at += 3
        self._skip(_BLANKS)
        if self._at >= len(self._text):
            self._refuse("The rule is empty", start)
        self._read_body()
        self._skip(_BLANKS)

    def _read_body(self) -> None:
        """Read alternatives up to the end of the rule: a line break outside all groups."""
        depth = 0
        has_item = False
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in "\r\n" and not depth:
                break
            if char in " \t#\r\n":
                self._skip(_BLANKS if depth else _SPACES)
            elif char in "()|":
                depth += {"(": 1, ")": -1, "|": 0}[char]
                if not 0 <= depth <= MAX_DEPTH:
                    self._refuse(f"Groups do not match or nest deeper than {MAX_DEPTH}", self._at)
                has_item = char == ")"
                self._at += 1
                self._skip(_SPACES if char == ")" else _BLANKS)
            elif char in "*+?{":
                if not has_item:
                    self._refuse("There is nothing to repeat", self._at)
                self._read_repeat(char)
            else:
                has_item = self._read_item(char)
        if depth:
            self._refuse("A group is never closed", self._at)

    def _read_item(self, char: str) -> bool:
        """Read a literal, a class, a token, a name or a dot; an empty one is nothing to repeat."""
        start = self._at
        pattern = {'"': _LITERAL, "[": _CLASS, "<": _TOKEN, "!": _TOKEN}.get(char, _NAME)
        if char == ".":
            self._at += 1
            return True
        found = self._take(pattern)
        if found is None:
            self._refuse("Malformed", start)
        if pattern is _NAME:
            self._used.setdefault(found.group(), start)
        return pattern in (_NAME, _TOKEN) or bool(found.group(1))

    def _read_repeat(self, char: str) -> None:
        if char != "{":
            self._at += 1
            return
        start = self._at
        found = self._take(_REPEAT)
        if found is None:
            self._refuse("A malformed repetition", start)
        bounds = [number for number in found.groups() if number]
        if any(len(number) > 6 or int(number) > MAX_REPEAT for number in bounds):
            self._refuse(f"A repetition above {MAX_REPEAT}", start)
        self._total_repeat += max(map(int, bounds))
        if self._total_repeat > MAX_TOTAL_REPEAT:
            self._refuse(f"Repetitions add up to more than {MAX_TOTAL_REPEAT}", start)

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._take(pattern)

    def _refuse(self, what: str, at: int) -> NoReturn:
        raise EngineError(ErrorCode.INVALID_GRAMMAR, f"{what}, at position {at} of the grammar.")
