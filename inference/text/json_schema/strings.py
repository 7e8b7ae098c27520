"""Strings with a length, a pattern or a format."""

from collections.abc import Mapping
from typing import Any

from inference.text.json_schema.gbnf import Grammar, json_text, literal, one_of, string_chars
from inference.text.json_schema.keywords import read_bounds
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.regex_tree import (
    BadPattern,
    Chars,
    Choice,
    Node,
    Repeat,
    Sequence,
    longest,
    num_positions,
    parse_pattern,
    shortest,
)

# The engine follows every place at once that a text may be at, for each token.
_MAX_POSITIONS = 256

_LEAP = "(0[48]|[2468][048]|[13579][26])"
_DATE = (
    "([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|([1-9][0-9]{_LEAP}|([2468][048]|[13579][26])00)-02-29)"
)
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](\.[0-9]{{1,6}})?(Z|[+-]{_CLOCK})"
_HEX = "[0-9a-fA-F]"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
# Other formats are notes, as the specification has it.
_FORMATS = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}T{_TIME}$",
    "uuid": f"^{_HEX}{{8}}-({_HEX}{{4}}-){{3}}{_HEX}{{12}}$",
    "ipv4": rf"^({_BYTE}\.){{3}}{_BYTE}$",
}


def string_item(grammar: Grammar, schema: Mapping[str, Any], pointer: str) -> str:
    """Give an item that matches the JSON strings a schema allows."""
    least, most = read_bounds(schema, "minLength", "maxLength", pointer)
    node = _read_pattern(schema, pointer)
    if node is not None:
        inner = _pattern_item(grammar, _fit(node, least, most, pointer), pointer)
    elif least == 0 and most is None:
        return "string"
    else:
        inner = grammar.repeat("char", least, most)
    return grammar.define(f"{literal(chr(34))} {inner} {literal(chr(34))}")


def _read_pattern(schema: Mapping[str, Any], pointer: str) -> Node | None:
    pattern, form = schema.get("pattern"), schema.get("format")
    if "format" in schema and not isinstance(form, str):
        raise Refusal(f"{pointer}/format", "must be a string")
    known = _FORMATS.get(form) if form else None
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


def _pattern_item(grammar: Grammar, node: Node, pointer: str) -> str:
    is_simple = isinstance(node, Repeat) and isinstance(node.part, Chars)
    single = isinstance(node, Sequence) and len(node.parts) == 1 and node.parts[0]
    is_simple |= isinstance(single, Repeat) and isinstance(single.part, Chars)
    if not is_simple and num_positions(node) > _MAX_POSITIONS:
        problem = f"is too complex: written out it has more than {_MAX_POSITIONS} characters"
        raise Refusal(f"{pointer}/pattern", problem)
    return _item(grammar, node)


def _item(grammar: Grammar, node: Node) -> str:
    match node:
        case Chars(ranges):
            return string_chars(ranges)
        case Sequence(parts):
            return _sequence(grammar, parts)
        case Choice(options):
            return one_of([_item(grammar, option) for option in options])
        case Repeat(part, least, most):
            return grammar.repeat(_item(grammar, part), least, most)


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
