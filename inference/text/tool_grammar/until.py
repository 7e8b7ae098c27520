"""Any text up to a mark."""

from inference.text.grammar.nodes import UNICODE, complement, intersect
from inference.text.grammar.writer import char_class, literal
from inference.text.json_schema.gbnf import Grammar

GAP = r'"\n"{0,2}'
"""What may stand between a mark and what follows it."""


def text_until(grammar: Grammar, mark: str) -> str:
    """Give an item that matches any text and then a mark, which the text before does not hold.

    One rule for each number of the mark's characters that may just have been read.
    """
    names = [grammar.reserve() for _ in mark]
    for num_read, name in enumerate(names):
        steps = {char: _num_read(mark, mark[:num_read] + char) for char in sorted(set(mark))}
        known = {char: then for char, then in steps.items() if then}
        others = intersect(UNICODE, complement(tuple((ord(char), ord(char)) for char in known)))
        options = [f"{char_class(others)} {names[0]}"]
        for char, then in known.items():
            options.append(f"{literal(char)} {names[then]}" if then < len(mark) else literal(char))
        grammar.fill(name, " | ".join(options))
    return names[0]


def _num_read(mark: str, text: str) -> int:
    """Count the characters of the mark that a text ends with."""
    return next(n for n in range(len(text), -1, -1) if text.endswith(mark[:n]))
