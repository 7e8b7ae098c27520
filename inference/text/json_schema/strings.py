"""Strings with a length, a pattern or a format."""

from collections.abc import Mapping
from typing import Any

from inference.text.grammar.nodes import Chars, Choice, Node, Repeat, Sequence, Text
from inference.text.grammar.regex import (
    BadPattern,
    longest,
    num_positions,
    parse_pattern,
    shortest,
)
from inference.text.grammar.writer import literal, one_of
from inference.text.json_schema import formats
from inference.text.json_schema.counted import counted_item
from inference.text.json_schema.gbnf import Grammar, json_text, string_chars
from inference.text.json_schema.keywords import EXCEPT, read_bounds
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.tries import other_key

# A pattern that repeats its parts less often than this says too little of what it said.
_MIN_REPEAT = 6
# The matcher follows every place at once that a text may be at.
_MAX_POSITIONS = 1024


def string_item(grammar: Grammar, schema: Mapping[str, Any], pointer: str) -> str:
    """Give an item that matches the JSON strings a schema allows."""
    least, most = read_bounds(schema, "minLength", "maxLength", pointer)
    patterns = _read_patterns(schema, pointer)
    excluded = [value for value in schema.get(EXCEPT, ()) if isinstance(value, str)]
    excluded = [value for value in excluded if least <= len(value) <= (most or len(value))]
    if excluded:
        if patterns or (least, most) != (0, None):
            raise Refusal(f"{pointer}/not", "excludes texts beside a pattern or a length")
        return other_key(grammar, excluded)
    if patterns:
        inner = _matching(grammar, patterns, least, most, pointer)
    elif least == 0 and most is None:
        return "string"
    else:
        inner = grammar.repeat("char", least, most)
    return grammar.define(f"{literal(chr(34))} {inner} {literal(chr(34))}")


def pattern_of(schema: Mapping[str, Any], pointer: str) -> Node | None:
    """Give the tree of a schema's pattern or format within its bounds; None where it has none."""
    patterns = _read_patterns(schema, pointer)
    if not patterns:
        return None
    if len(patterns) > 1:
        raise Refusal(pointer, "has both a pattern and a format, which is not supported here")
    least, most = read_bounds(schema, "minLength", "maxLength", pointer)
    node = _fit(patterns[0], least, most, pointer) or _shorten(patterns[0], least, most)
    if node is None:
        raise _too_long(pointer)
    _check_complexity(node, pointer)
    return node


def _read_patterns(schema: Mapping[str, Any], pointer: str) -> list[Node]:
    pattern, form = schema.get("pattern"), schema.get("format")
    if "format" in schema and not isinstance(form, str):
        raise Refusal(f"{pointer}/format", "must be a string")
    if form in formats.REFUSED:
        raise Refusal(f"{pointer}/format", f"is '{form}', which is not supported")
    known = formats.PATTERNS.get(form) if form else None
    found = [parse_pattern(known)] if known else []
    if "pattern" not in schema:
        return found
    if not isinstance(pattern, str):
        raise Refusal(f"{pointer}/pattern", "must be a string")
    try:
        return [parse_pattern(pattern), *found]
    except BadPattern as error:
        raise Refusal(f"{pointer}/pattern", str(error)) from None


def _matching(
    grammar: Grammar, patterns: list[Node], least: int, most: int | None, pointer: str
) -> str:
    """Give an item for what matches all patterns and has the length."""
    if len(patterns) == 1 and (node := _fit(patterns[0], least, most, pointer)):
        _check_complexity(node, pointer)
        return _item(grammar, node)
    for node in patterns:
        _check_complexity(node, pointer)
    item = counted_item(grammar, patterns, least, most)
    if item == "":
        raise Unsatisfiable(pointer, "has a pattern and a length, or a format, that no text meets")
    if item is not None:
        return item
    if len(patterns) > 1:
        raise Refusal(pointer, "has a pattern and a format that are too complex together")
    shortened = _shorten(patterns[0], least, most)
    if shortened is None:
        raise _too_long(pointer)
    return _item(grammar, shortened)


def _shorten(node: Node, least: int, most: int | None) -> Node | None:
    """Repeat nothing in a pattern so often that it gets too long; None where that leaves little."""
    if most is None or shortest(node) < least:
        return None
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        length = longest(_repeated_less(node, middle))
        low, high = (middle, high) if length is not None and length <= most else (low, middle - 1)
    return _repeated_less(node, low) if low >= _MIN_REPEAT else None


def _repeated_less(node: Node, limit: int) -> Node:
    match node:
        case Sequence(parts):
            return Sequence(tuple(_repeated_less(part, limit) for part in parts))
        case Choice(options):
            return Choice(tuple(_repeated_less(option, limit) for option in options))
        case Repeat(part, least, most):
            kept = limit if most is None else min(most, limit)
            return Repeat(_repeated_less(part, limit), least, max(least, kept))
    return node


def _too_long(pointer: str) -> Refusal:
    return Refusal(pointer, "has a pattern whose texts may break its minLength or maxLength")


def _fit(node: Node, least: int, most: int | None, pointer: str) -> Node | None:
    """Give a pattern that keeps bounds of the length; None where its texts must be counted."""
    shortest_text, longest_text = shortest(node), longest(node)
    fits_least = shortest_text >= least
    fits_most = most is None or (longest_text is not None and longest_text <= most)
    if fits_least and fits_most:
        return node
    repeat = node.parts[0] if isinstance(node, Sequence) and len(node.parts) == 1 else node
    if not isinstance(repeat, Repeat) or not isinstance(repeat.part, Chars):
        return None
    ends = [end for end in (repeat.most, most) if end is not None]
    fitted = Repeat(repeat.part, max(repeat.least, least), min(ends) if ends else None)
    if fitted.most is not None and fitted.least > fitted.most:
        raise Unsatisfiable(pointer, "has a pattern and a length that no text meets")
    return fitted


def _check_complexity(node: Node, pointer: str) -> None:
    is_simple = isinstance(node, Repeat) and isinstance(node.part, Chars)
    single = isinstance(node, Sequence) and len(node.parts) == 1 and node.parts[0]
    is_simple |= isinstance(single, Repeat) and isinstance(single.part, Chars)
    if not is_simple and num_positions(node) > _MAX_POSITIONS:
        problem = f"is too complex: written out it has more than {_MAX_POSITIONS} characters"
        raise Refusal(f"{pointer}/pattern", problem)


def _item(grammar: Grammar, node: Node) -> str:
    match node:
        case Chars(ranges):
            return string_chars(ranges)
        case Sequence(parts):
            return _sequence(grammar, parts)
        case Choice(options):
            return one_of([_item(grammar, option) for option in options])
        case Text(text):
            return literal(json_text(text)[1:-1])
        case Repeat(part, least, most):
            return grammar.repeat(_item(grammar, part), least, most)
    raise ValueError(node)


def _sequence(grammar: Grammar, parts: tuple[Node, ...]) -> str:
    """Give the parts in a row, single characters joined to words."""
    items, word = [], ""
    for part in (*parts, None):
        if isinstance(part, Chars) and len(part.ranges) == 1 and len(set(part.ranges[0])) == 1:
            word += chr(part.ranges[0][0])
            continue
        if word:
            items.append(literal(json_text(word)[1:-1]))
            word = ""
        if part is not None:
            items.append(_item(grammar, part))
    if not items:
        return '""'
    return items[0] if len(items) == 1 else "(" + " ".join(items) + ")"
