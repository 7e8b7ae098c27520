"""What grammars and regular expressions are made of: sets of characters, put together."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

# Code points from the first to the second, both within.
Ranges: TypeAlias = tuple[tuple[int, int], ...]
# All characters: halves of surrogate pairs are none.
UNICODE: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Text:
    """These characters, one after another."""

    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after another."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, repeated; no ``most`` is without end."""

    part: "Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of a name; ``at`` is where the grammar names it."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Token:
    """One token, by id or spelling; or any token but this one."""

    id: int
    spelling: str
    is_negated: bool


Node: TypeAlias = Chars | Text | Sequence | Choice | Repeat | Rule | Token


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


# The same few sets come in every grammar.
@lru_cache(256)
def intersect(first: Ranges, second: Ranges) -> Ranges:
    """Give the code points in both."""
    return tuple(
        (max(low, other_low), min(high, other_high))
        for low, high in normalize(first)
        for other_low, other_high in normalize(second)
        if max(low, other_low) <= min(high, other_high)
    )
