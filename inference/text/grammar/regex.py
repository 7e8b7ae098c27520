"""A regular expression, of the part of ECMA's and Python's languages that is regular, as a tree.

Refused: look-around, back references, word borders, flags, properties, and anchors anywhere but
at the ends of the whole or of its alternatives. A lazy quantifier is a plain one: which texts
match is the same.
"""

from dataclasses import dataclass
from typing import NoReturn

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
    normalize,
)
from inference.text.grammar.syntax import MAX_REPEAT

# Everything but control characters; and with the three that plain text has.
PRINTABLE: Ranges = ((0x20, 0x7E), (0xA0, 0xD7FF), (0xE000, 0x10FFFF))
_PLAIN: Ranges = ((0x09, 0x0A), (0x0D, 0x0D), *PRINTABLE)
MAX_LENGTH = 2000
_MAX_NESTING = 24
_ASCII: Ranges = ((0x20, 0x7E),)
_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20))
# Of ECMA's language; and all that some language takes for a space.
_ECMA_SPACE: Ranges = (
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_ANY_SPACE: Ranges = (*_ECMA_SPACE, (0x1C, 0x1F), (0x85, 0x85), (0x180E, 0x180E), (0x200B, 0x200B))
_LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_CLASSES = {"d": _DIGITS, "w": _WORD}
_SET_NAMES = "dDsSwW"
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}


class BadPattern(ValueError):
    """A pattern that is wrong or not supported."""


def parse_pattern(pattern: str) -> Node:
    """Give the tree of the texts in which a pattern is found; without anchors that is anywhere."""
    return _Parser(pattern, _Alphabet(PRINTABLE), (Repeat(Chars(PRINTABLE), 0, None),)).parse()


def parse_exact_pattern(pattern: str) -> Node:
    """Give the same for judging texts instead of writing them: of all characters."""
    alphabet = _Alphabet(UNICODE, UNICODE, _ECMA_SPACE, _ECMA_SPACE)
    return _Parser(pattern, alphabet, (Repeat(Chars(UNICODE), 0, None),)).parse()


def parse_whole_pattern(pattern: str) -> Node:
    """Give the tree of the texts that a pattern matches from their beginning to their end."""
    return _Parser(pattern, _Alphabet(_PLAIN), ()).parse()


def parse_search_pattern(pattern: str) -> Node:
    """Give the tree of a pattern that is looked for in text, where any character may be."""
    return _Parser(pattern, _Alphabet(UNICODE, UNICODE, any_space=_SPACE), ()).parse()


@dataclass(frozen=True, slots=True)
class _Alphabet:
    """Of which characters sets are that are named by what they lack.

    Where they lack ``\\d`` or ``\\w``, they are of ``rest``: beyond ASCII languages differ in what
    these are. ``\\s`` is ``space``, and ``\\S`` what is not of ``any_space``.
    """

    all: Ranges
    rest: Ranges = _ASCII
    space: Ranges = _SPACE
    any_space: Ranges = _ANY_SPACE

    def named(self, name: str, *, is_lacking: bool) -> Ranges:
        """Give the set of an escape, to be added to a set or to be lacking from one."""
        match name:
            case "s":
                return self.any_space if is_lacking else self.space
            case "S":
                return intersect(self.all, complement(self.any_space))
        known = _CLASSES[name.lower()]
        return known if name in _CLASSES else intersect(self.rest, complement(known))


class _Parser:
    """Reads a pattern. ``around`` is what may stand where a pattern is not anchored."""

    def __init__(self, text: str, alphabet: _Alphabet, around: tuple[Node, ...]) -> None:
        if len(text) > MAX_LENGTH:
            raise BadPattern(f"is longer than {MAX_LENGTH} characters")
        self._text, self._around = text, around
        self._alphabet = alphabet
        self._at = 0

    def parse(self) -> Node:
        options = [self._anchored()]
        while self._take("|"):
            options.append(self._anchored())
        if self._at < len(self._text):
            self._refuse("')' closes nothing")
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _anchored(self) -> Node:
        starts = self._take("^")
        body = self._sequence(1)
        ends = self._take("$")
        if self._at < len(self._text) and self._text[self._at] not in "|)":
            self._refuse("'$' is supported at the end only")
        before, after = () if starts else self._around, () if ends else self._around
        return Sequence((*before, *body.parts, *after))

    def _choice(self, nesting: int) -> Node:
        if nesting > _MAX_NESTING:
            self._refuse(f"groups nest deeper than {_MAX_NESTING}")
        options = [self._sequence(nesting)]
        while self._take("|"):
            options.append(self._sequence(nesting))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, nesting: int) -> Sequence:
        parts = []
        while self._at < len(self._text) and self._text[self._at] not in "|)$":
            parts.append(self._quantified(self._atom(nesting)))
        return Sequence(tuple(parts))

    def _atom(self, nesting: int) -> Node:
        char = self._next()
        if char == "(":
            return self._group(nesting)
        if char == "[":
            return self._chars(self._class())
        if char == ".":
            return Chars(intersect(self._alphabet.all, complement(_LINE_ENDS)))
        if char == "\\":
            return self._chars(self._escape())
        if char in "^*+?{}]":
            self._refuse(f"'{char}' is not supported here")
        return self._chars(_single(ord(char)))

    def _group(self, nesting: int) -> Node:
        if self._take("?") and not self._take(":"):
            self._group_name()
        node = self._choice(nesting + 1)
        if not self._take(")"):
            self._refuse("a group is never closed, or holds an anchor")
        return node

    def _group_name(self) -> None:
        """Skip the name of a group; refuse look-around, flags and all else that '?' begins."""
        start = self._at - 2
        self._take("P")
        end = self._text.find(">", self._at)
        name = self._text[self._at + 1 : end]
        if not self._take("<") or not name.isidentifier():
            self._at = start
            self._refuse("only plain groups are supported")
        self._at = end + 1

    def _quantified(self, node: Node) -> Node:
        if self._at >= len(self._text) or self._text[self._at] not in "*+?{":
            return node
        sign = self._next()
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1), "{": (0, 0)}[sign]
        if sign == "{":
            least, most = self._bounds()
        self._take("?")
        if self._at < len(self._text) and self._text[self._at] in "*+?{":
            self._refuse("a quantifier after a quantifier is not supported")
        if longest(node) == 0:
            self._refuse("what is repeated matches nothing but the empty text")
        return Repeat(node, least, most)

    def _bounds(self) -> tuple[int, int | None]:
        end = self._text.find("}", self._at)
        first, comma, second = self._text[self._at : max(end, self._at)].partition(",")
        self._at = end + 1
        numbers = [first, second] if second else [first]
        if end < 0 or not first or not all(n.isascii() and n.isdigit() for n in numbers):
            self._refuse("'{' begins no quantifier")
        if any(len(n) > 4 or int(n) > MAX_REPEAT for n in numbers):
            self._refuse(f"a quantifier is above {MAX_REPEAT}")
        least = int(first)
        most = least if not comma else int(second) if second else None
        if most is not None and most < least:
            self._refuse("a quantifier's bounds are in the wrong order")
        return least, most

    def _class(self) -> Ranges:
        is_negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        names: set[str] = set()
        while not self._take("]"):
            low, name = self._class_atom(is_negated)
            names.add(name)
            is_range = (
                self._text.startswith("-", self._at) and self._text[self._at + 1 :][:1] != "]"
            )
            if not is_range:
                ranges += low
                continue
            self._at += 1
            high, high_name = self._class_atom(is_negated)
            if name or high_name or low[0][0] > high[0][0]:
                self._refuse("a range of a class is malformed")
            ranges.append((low[0][0], high[0][0]))
        if any({name, name.upper()} <= names for name in "dsw"):
            # As in [\s\S]: whatever the language, every character is one of both.
            ranges += self._alphabet.all
        if not is_negated:
            return normalize(tuple(ranges))
        allowed = self._alphabet.rest if names - {"", "s"} else self._alphabet.all
        return intersect(allowed, complement(tuple(ranges)))

    def _class_atom(self, is_negated: bool) -> tuple[Ranges, str]:
        """Give the next characters of a class, and the letter of an escape that means a set."""
        char = self._next()
        if char != "\\":
            return _single(ord(char)), ""
        name = self._text[self._at : self._at + 1]
        if name and name in _SET_NAMES:
            self._at += 1
            return self._alphabet.named(name, is_lacking=is_negated), name
        if name == "b":
            self._at += 1
            return _single(8), ""
        return self._escape(), ""

    def _escape(self) -> Ranges:
        char = self._next()
        if char in _SET_NAMES:
            return self._alphabet.named(char, is_lacking=False)
        if char in _CONTROLS:
            return _single(_CONTROLS[char])
        if char in "xu":
            num_digits = 2 if char == "x" else 4
            digits = self._text[self._at : self._at + num_digits]
            self._at += num_digits
            if len(digits) < num_digits or any(d not in "0123456789abcdefABCDEF" for d in digits):
                self._refuse(f"'\\{char}' needs {num_digits} hexadecimal digits")
            return _single(int(digits, 16))
        if char.isalnum() or not char.isascii():
            self._refuse(f"'\\{char}' is not supported")
        return _single(ord(char))

    def _chars(self, ranges: Ranges) -> Chars:
        usable = intersect(ranges, complement(((0xD800, 0xDFFF),)))
        if not usable:
            self._refuse("a class matches no character")
        return Chars(usable)

    def _next(self) -> str:
        if self._at >= len(self._text):
            self._refuse("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, char: str) -> bool:
        is_there = self._text.startswith(char, self._at)
        self._at += is_there
        return is_there

    def _refuse(self, problem: str) -> NoReturn:
        raise BadPattern(f"is not supported: {problem} (position {min(self._at, len(self._text))})")


def shortest(node: Node) -> int:
    """Give the length of the shortest text, in characters."""
    match node:
        case Text(text):
            return len(text)
        case Sequence(parts):
            return sum(map(shortest, parts))
        case Choice(options):
            return min(map(shortest, options))
        case Repeat(part, least, _):
            return least * shortest(part)
        case Chars() | Rule() | Token():
            return 1


def longest(node: Node) -> int | None:
    """Give the length of the longest text; None where there is none."""
    match node:
        case Text(text):
            return len(text)
        case Sequence(children) | Choice(children):
            lengths = [longest(child) for child in children]
            known = [length for length in lengths if length is not None]
            if len(known) < len(lengths):
                return None
            return sum(known) if isinstance(node, Sequence) else max(known)
        case Repeat(part, _, most):
            length = longest(part)
            return None if most is None or length is None else most * length
        case Chars() | Rule() | Token():
            return 1


def num_positions(node: Node) -> int:
    """Give how many places in the written-out pattern a matcher may be at."""
    match node:
        case Text(text):
            return len(text)
        case Sequence(children) | Choice(children):
            return sum(map(num_positions, children))
        case Repeat(part, least, most):
            return num_positions(part) * max(least, most or 1, 1)
        case Chars() | Rule() | Token():
            return 1


def _single(code: int) -> Ranges:
    return ((code, code),)
