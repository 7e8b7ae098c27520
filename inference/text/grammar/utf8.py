"""Sets of characters as the bytes that UTF-8 spells them with."""

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from inference.text.grammar.nodes import UNICODE, Ranges, intersect

ByteRange: TypeAlias = tuple[int, int]

# The last code points that one, two, three and four bytes can spell.
_LAST_BY_LENGTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)


# The same few sets come in every grammar.
@lru_cache(256)
def byte_ranges(ranges: Ranges) -> tuple[tuple[ByteRange, ...], ...]:
    """Give sequences of ranges, one per byte, that together spell exactly these characters."""
    return tuple(_byte_ranges(ranges))


def _byte_ranges(ranges: Ranges) -> Iterator[tuple[ByteRange, ...]]:
    for low, high in intersect(ranges, UNICODE):
        first = 0
        for last in _LAST_BY_LENGTH:
            if max(low, first) <= min(high, last):
                yield from _of_one_length(max(low, first), min(high, last))
            first = last + 1


def _of_one_length(low: int, high: int) -> Iterator[tuple[ByteRange, ...]]:
    """Split a range until each byte's range is independent of the others."""
    for num_low_bits in (6, 12, 18):
        mask = (1 << num_low_bits) - 1
        if low >> num_low_bits == high >> num_low_bits:
            continue
        if low & mask and low > 0x7F:
            yield from _of_one_length(low, low | mask)
            yield from _of_one_length((low | mask) + 1, high)
            return
        if high & mask != mask and high > 0x7F:
            yield from _of_one_length(low, (high & ~mask) - 1)
            yield from _of_one_length(high & ~mask, high)
            return
    first, last = chr(low).encode(), chr(high).encode()
    yield tuple(zip(first, last, strict=True))
