"""Sets of texts as grammar: one of them, or any key but them, at one branch per character.

A plain list of alternatives would have the engine follow thousands of them at once.
"""

from collections.abc import Iterable, Mapping
from typing import Optional

from inference.text.grammar.nodes import complement, intersect
from inference.text.grammar.regex import PRINTABLE
from inference.text.grammar.writer import char_class, literal, one_of
from inference.text.json_schema.gbnf import Grammar

_MAX_NESTING = 12
# Beyond so many characters that a key shares with a name, no key is offered.
_MAX_SHARED = 48


class _Node:
    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.is_end = False
        self.tail = ""

    def add(self, text: str, tail: str = "") -> None:
        node = self
        for char in text:
            node = node.children.setdefault(char, _Node())
        node.is_end, node.tail = True, tail

    def only_child(self) -> Optional["tuple[str, _Node]"]:
        """Give the child if nothing else can follow."""
        if self.is_end or len(self.children) != 1:
            return None
        return next(iter(self.children.items()))


def any_text(grammar: Grammar, texts: Iterable[str]) -> str:
    """Give an item that matches exactly these texts."""
    return any_beginning(grammar, dict.fromkeys(texts, ""))


def any_beginning(grammar: Grammar, tails: Mapping[str, str]) -> str:
    """Give an item that matches one of these texts and what follows it; "" is nothing."""
    root = _Node()
    for text, tail in tails.items():
        root.add(text, tail)
    return _some(grammar, root, 0)


def other_key(grammar: Grammar, names: Iterable[str]) -> str:
    """Give an item that matches a JSON string, without escapes, that is none of these names."""
    root = _Node()
    for name in names:
        root.add(name)
    if not root.children and not root.is_end:
        return "string"
    rest = grammar.define(char_class(_PLAIN) + "*")
    quote = literal('"')
    return grammar.define(f"{quote} {_none(grammar, root, rest, 0)} {quote}")


_PLAIN = intersect(PRINTABLE, complement(((0x22, 0x22), (0x5C, 0x5C))))


def _some(grammar: Grammar, node: _Node, nesting: int) -> str:
    texts = [node.tail or '""'] if node.is_end else []
    for char, child in node.children.items():
        prefix = char
        while step := child.only_child():
            prefix, child = prefix + step[0], step[1]
        tail = _some(grammar, child, nesting + 1) if child.children else child.tail
        texts.append(f"{literal(prefix)} {tail}".rstrip())
    return _grouped(grammar, texts, nesting)


def _none(grammar: Grammar, node: _Node, rest: str, nesting: int) -> str:
    texts = [] if node.is_end else ['""']
    known = tuple((ord(char), ord(char)) for char in node.children)
    texts.append(f"{char_class(intersect(_PLAIN, complement(known)))} {rest}")
    for char, child in node.children.items():
        if nesting < _MAX_SHARED and intersect(_PLAIN, ((ord(char), ord(char)),)):
            texts.append(f"{literal(char)} {_none(grammar, child, rest, nesting + 1)}")
    return _grouped(grammar, texts, nesting)


def _grouped(grammar: Grammar, texts: list[str], nesting: int) -> str:
    """Give one of the texts as an item; groups nest only so deep, so some become rules."""
    if nesting % _MAX_NESTING == _MAX_NESTING - 1:
        return grammar.define(" | ".join(texts))
    if len(texts) == 1 and " " not in texts[0]:
        return texts[0]
    return "(" + " | ".join(texts) + ")" if len(texts) == 1 else one_of(texts)
