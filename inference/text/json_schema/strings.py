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
from inference.text.json_schema.gbnf import Grammar, json_text, string_chars
from inference.text.json_schema.keywords import EXCEPT, read_bounds
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.tries import other_key

# The matcher follows every place at once that a text may be at.
_MAX_POSITIONS = 1024


def string_item(grammar: Grammar, schema: Mapping[str, Any], pointer: str) -> str:
    """Give an item that matches the JSON strings a schema allows."""
    least, most = read_bounds(schema, "minLength", "maxLength", pointer)
    node = pattern_of(schema, pointer)
    excluded = [value for value in schema.get(EXCEPT, ()) if isinstance(value, str)]
    excluded = [value for value in excluded if least <= len(value) <= (most or len(value))]
    if excluded:
        if node is not None or (least, most) != (0, None):
            raise Refusal(f"{pointer}/not", "excludes texts beside a pattern or a length")
        return other_key(grammar, excluded)
    if node is not None:
        inner = _item(grammar, node)
    elif least == 0 and most is None:
        return "string"
    else:
        inner = grammar.repeat("char", least, most)
    return grammar.define(f"{literal(chr(34))} {inner} {literal(chr(34))}")


def pattern_of(schema: Mapping[str, Any], pointer: str) -> Node | None:
    """Give the tree of a schema's pattern or format within its bounds; None where it has none."""
    node = _read_pattern(schema, pointer)
    if node is None:
        return None
    node = _fit(node, *read_bounds(schema, "minLength", "maxLength", pointer), pointer)
    _check_complexity(node, pointer)
    return node


def _read_pattern(schema: Mapping[str, Any], pointer: str) -> Node | None:
    pattern, form = schema.get("pattern"), schema.get("format")
    if "format" in schema and not isinstance(form, str):
        raise Refusal(f"{pointer}/format", "must be a string")
    if form in formats.REFUSED:
        raise Refusal(f"{pointer}/format", f"is '{form}', which is not supported")
    known = formats.PATTERNS.get(form) if form else None
    if "pattern" not in schema:
        return parse_pattern(known) if known else None
    if not isinstance(pattern, str):
        raise Refusal(f"{pointer}/pattern", "must be a string")
    if known:
        raise Refusal(pointer, "has both a pattern and a format, which is not supported")
    try:
        return parse_pattern(pattern)
    except BadPattern as error:
        raise Refusal(f"{pointer}/pattern", str(error)) from None


def _fit(node: Node, least: int, most: int | None, pointer: str) -> Node:
    """Bring a pattern and bounds of the length together, where that is possible."""
    shortest_text, longest_text = shortest(node), longest(node)
    fits_least = shortest_text >= least
    fits_most = most is None or (longest_text is not None and longest_text <= most)
    if fits_least and fits_most:
        return node
    repeat = node.parts[0] if isinstance(node, Sequence) and len(node.parts) == 1 else node
    if not isinstance(repeat, Repeat) or not isinstance(repeat.part, Chars):
        raise Refusal(pointer, "has a pattern whose texts may break its minLength or maxLength")
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
