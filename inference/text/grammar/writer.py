"""Grammars as text: literals, classes and whole trees.

An *item* is text that a repetition may follow: a rule's name, a literal, a class or a group.
"""

from inference.text.grammar.nodes import Chars, Choice, Node, Ranges, Repeat, Rule, Sequence, Text

_SIGNS = {(0, 1): "?", (0, None): "*", (1, None): "+"}


def write_item(node: Node) -> str:
    """Give the item that matches what a tree does."""
    match node:
        case Chars(ranges):
            return char_class(ranges)
        case Text(text):
            return literal(text)
        case Rule(name):
            return name
        case Sequence(()):
            return '""'
        case Sequence(parts):
            return "(" + " ".join(map(write_item, parts)) + ")"
        case Choice(options):
            return one_of([write_item(option) for option in options])
        case Repeat(_, _, 0):
            return '""'
        case Repeat(part, least, most):
            return f"({write_item(part)}{repetition(least, most)})"
    raise ValueError(node)


def literal(text: str) -> str:
    """Give the literal that matches a text."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else _spell(ord(c)) for c in quoted) + '"'


def char_class(ranges: Ranges) -> str:
    """Give a class that matches these characters themselves."""
    spelled = (
        _spell(low) if low == high else f"{_spell(low)}-{_spell(high)}" for low, high in ranges
    )
    return "[" + "".join(spelled) + "]"


def one_of(items: list[str]) -> str:
    """Give an item that is one of these."""
    unique = list(dict.fromkeys(items))
    return unique[0] if len(unique) == 1 else "(" + " | ".join(unique) + ")"


def repetition(least: int, most: int | None) -> str:
    """Give what stands behind a repeated item."""
    if (least, most) in _SIGNS:
        return _SIGNS[least, most]
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


def _spell(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    if code < 0x80:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
