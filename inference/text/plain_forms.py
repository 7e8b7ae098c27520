"""Grammars of answers that are no JSON: texts of a regular expression, and choices."""

from collections.abc import Sequence
from typing import Any

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar.regex import BadPattern, num_positions, parse_whole_pattern
from inference.text.grammar.syntax import MAX_BYTES
from inference.text.grammar.writer import write_item
from inference.text.json_schema.gbnf import Grammar
from inference.text.json_schema.refusal import Refusal
from inference.text.json_schema.tries import any_text

MAX_CHOICES = 1000
# More places than these the matcher would not follow at once.
_MAX_POSITIONS = 4096


def pattern_to_grammar(pattern: Any, *, param: str) -> str:
    """Give the grammar of the texts a pattern matches as a whole; raises EngineError."""
    if not isinstance(pattern, str) or not pattern:
        raise _refused(param, "must be a regular expression as a string, and not empty")
    try:
        node = parse_whole_pattern(pattern)
    except BadPattern as error:
        raise _refused(param, str(error)) from None
    if num_positions(node) > _MAX_POSITIONS:
        problem = f"is too complex: written out it has more than {_MAX_POSITIONS} characters"
        raise _refused(param, problem)
    return f"root ::= {write_item(node)}\n"


def choices_to_grammar(choices: Any, *, param: str) -> str:
    """Give the grammar of exactly these texts; raises EngineError."""
    if not _are_texts(choices):
        raise _refused(param, "must be a list of strings, none of them empty")
    if len(choices) > MAX_CHOICES or sum(map(len, choices)) > MAX_BYTES:
        raise _refused(param, f"has more than {MAX_CHOICES} choices, or {MAX_BYTES} characters")
    grammar = Grammar()
    try:
        return grammar.text(grammar.define(any_text(grammar, choices)))
    except Refusal as refusal:
        raise _refused(param, refusal.problem) from None


def _are_texts(choices: Any) -> bool:
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        return False
    return all(isinstance(choice, str) and choice for choice in choices)


def _refused(param: str, problem: str) -> EngineError:
    return EngineError(ErrorCode.INVALID_GRAMMAR, f"{param} {problem}.", param=param)
