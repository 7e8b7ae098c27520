"""A grammar as instructions for a machine that reads bytes and keeps a stack of places."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar.checks import ROOT
from inference.text.grammar.nodes import (
    Chars,
    Choice,
    Node,
    Ranges,
    Repeat,
    Rule,
    Sequence,
    Text,
    Token,
)
from inference.text.grammar.utf8 import ByteRange, byte_ranges

MAX_INSTRUCTIONS = 100_000


@dataclass(frozen=True, slots=True)
class Eat:
    """Read one byte: each option is a bit mask of classes and where it leads."""

    options: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class EatToken:
    """Read one whole token (or any other than it), then go on at ``next``."""

    token: int
    is_negated: bool
    next: int


@dataclass(frozen=True, slots=True)
class Fork:
    """Go on at each of these places at once."""

    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Run a rule, then go on at ``back``; None where the rule ends the caller too."""

    entry: int
    back: int | None


@dataclass(frozen=True, slots=True)
class Loop:
    """Run the body from ``least`` to ``most`` times, then go on at ``next``."""

    body: int
    least: int
    most: int | None
    next: int


@dataclass(frozen=True, slots=True)
class Return:
    """End a rule, or one run of a loop's body."""


Instruction: TypeAlias = Eat | EatToken | Fork | Call | Loop | Return
FindToken: TypeAlias = Callable[[str], int | None]
_RETURN = 0


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions, where they begin, and the class of each byte; classes count from 0."""

    code: tuple[Instruction, ...]
    entry: int
    byte_classes: bytes

    @property
    def num_classes(self) -> int:
        """How many classes of bytes there are: those of one class are alike to every rule."""
        return max(self.byte_classes) + 1


def compile_rules(rules: dict[str, Node], find_token: FindToken) -> Program:
    """Compile sound rules; ``find_token`` gives the id of a token's spelling. Raises EngineError"""
    return _Compiler(rules, find_token).compile()


class _Compiler:
    """Writes each node before what it goes on to, so every jump's target is known."""

    def __init__(self, rules: dict[str, Node], find_token: FindToken) -> None:
        self._rules, self._find_token = rules, find_token
        self._code: list[Instruction] = [Return()]
        self._entries: dict[str, int] = {}
        self._waiting: list[str] = []
        # What each Eat reads, as ranges of bytes, until the classes of bytes are known.
        self._eats: dict[int, list[tuple[ByteRange, int]]] = {}
        self._known: dict[tuple[Ranges, int], int] = {}

    def compile(self) -> Program:
        entry = self._entry(ROOT)
        while self._waiting:
            name = self._waiting.pop()
            body = self._write(self._rules[name], _RETURN)
            self._code[self._entries[name]] = Fork((body,))
        byte_classes = self._divide_bytes()
        masks: dict[ByteRange, int] = {}
        for at, options in self._eats.items():
            for (low, high), _ in options:
                if (low, high) not in masks:
                    kinds = set(byte_classes[low : high + 1])
                    masks[low, high] = sum(1 << kind for kind in kinds)
            self._code[at] = Eat(tuple((masks[bounds], then) for bounds, then in options))
        return Program(tuple(self._code), entry, byte_classes)

    def _entry(self, name: str) -> int:
        if name not in self._entries:
            self._entries[name] = self._emit(Fork(()))
            self._waiting.append(name)
        return self._entries[name]

    def _write(self, node: Node, then: int) -> int:
        """Write a node that goes on at ``then``; give where it begins."""
        match node:
            case Chars(ranges):
                return self._chars(ranges, then)
            case Text(text):
                for byte in reversed(text.encode("utf-8", "replace")):
                    then = self._eat([((byte, byte), then)])
                return then
            case Sequence(parts):
                for part in reversed(parts):
                    then = self._write(part, then)
                return then
            case Choice(options):
                return self._fork([self._write(option, then) for option in options])
            case Repeat(part, least, most):
                return self._repeat(part, least, most, then)
            case Rule(name):
                return self._emit(Call(self._entry(name), then if then != _RETURN else None))
            case Token():
                return self._emit(EatToken(self._token(node), node.is_negated, then))

    def _chars(self, ranges: Ranges, then: int) -> int:
        if (ranges, then) not in self._known:
            options = []
            for spelling in byte_ranges(ranges):
                at = then
                for bounds in reversed(spelling[1:]):
                    at = self._eat([(bounds, at)])
                options.append((spelling[0], at))
            self._known[ranges, then] = self._eat(options)
        return self._known[ranges, then]

    def _repeat(self, part: Node, least: int, most: int | None, then: int) -> int:
        if most == 0:
            return then
        if (least, most) == (0, 1):
            return self._fork([self._write(part, then), then])
        if most is None and least < 2:
            loop = self._emit(Fork(()))
            body = self._write(part, loop)
            self._code[loop] = Fork((body, then))
            return body if least else loop
        body = self._write(part, _RETURN)
        return self._emit(Loop(body, least, most, then))

    def _token(self, node: Token) -> int:
        token = self._find_token(node.spelling) if node.spelling else node.id
        if token is None:
            raise EngineError(
                ErrorCode.INVALID_GRAMMAR,
                f"The grammar names the token <{node.spelling[:64]}>, which the model lacks.",
                param="grammar",
            )
        return token

    def _eat(self, options: list[tuple[ByteRange, int]]) -> int:
        at = self._emit(Eat(()))
        self._eats[at] = options
        return at

    def _fork(self, targets: list[int]) -> int:
        return targets[0] if len(targets) == 1 else self._emit(Fork(tuple(targets)))

    def _emit(self, instruction: Instruction) -> int:
        if len(self._code) >= MAX_INSTRUCTIONS:
            raise EngineError(
                ErrorCode.INVALID_GRAMMAR,
                f"The grammar is too large: it has more than {MAX_INSTRUCTIONS} steps.",
                param="grammar",
            )
        self._code.append(instruction)
        return len(self._code) - 1

    def _divide_bytes(self) -> bytes:
        """Put bytes that no instruction tells apart into one class."""
        bounds = {bounds for options in self._eats.values() for bounds, _ in options}
        borders = {low for low, _ in bounds} | {high + 1 for _, high in bounds}
        classes, kind = bytearray(), 0
        for byte in range(256):
            kind += byte in borders and byte > 0
            classes.append(kind)
        return bytes(classes)
