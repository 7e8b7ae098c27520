"""Is a GBNF grammar harmless enough to hand to llama.cpp's own parser?

That parser and its matcher recurse, so a hostile grammar could end the process. The bounds here
are checked without recursion before native code sees the text.
"""

import re

from inference.protocol.errors import EngineError, ErrorCode

MAX_BYTES = 64 * 1024
MAX_DEPTH = 64
MAX_REPEAT = 2000
MAX_TOTAL_REPEAT = 40_000
MAX_RULES = 2000

_EMPTY_RULE = re.compile(r"::=\s*(?:$|[\w-]+\s*::=)")


def check_grammar(text: str) -> None:
    """Refuse a grammar that is too large, too deep or repeats too much; raises EngineError."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise _refusal(f"The grammar is larger than {MAX_BYTES} bytes.")
    if "\0" in text:
        raise _refusal("The grammar contains a NUL character.")
    if text.count("::=") > MAX_RULES:
        raise _refusal(f"The grammar has more than {MAX_RULES} rules.")
    _check_structure(text)


def _check_structure(text: str) -> None:
    depth = total = at = 0
    while at < len(text):
        char = text[at]
        if char == "#":
            at = _find_or_end(text, "\n", at)
        elif char == '"':
            at = _skip_quoted(text, at, '"')
        elif char == "[":
            at = _skip_quoted(text, at, "]")
        elif char == "{":
            end = _find_or_end(text, "}", at)
            total += _repeat_bound(text[at + 1 : end], at)
            at = end
        elif char == ":" and _EMPTY_RULE.match(text, at):
            raise _refusal(f"The rule at position {at} is empty.")
        elif char in "()":
            depth += 1 if char == "(" else -1
        if depth < 0 or depth > MAX_DEPTH:
            raise _refusal(
                f"Groups nest deeper than {MAX_DEPTH} or do not match, at position {at}."
            )
        if total > MAX_TOTAL_REPEAT:
            raise _refusal(f"Repetitions add up to more than {MAX_TOTAL_REPEAT}, at position {at}.")
        at += 1


def _find_or_end(text: str, char: str, at: int) -> int:
    end = text.find(char, at)
    return len(text) if end < 0 else end


def _skip_quoted(text: str, at: int, closing: str) -> int:
    """Give the position of the closing character, escapes skipped."""
    start = at
    at += 1
    while at < len(text) and text[at] != closing:
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise _refusal(f"What opens at position {start} is never closed.")
    return at


def _repeat_bound(bounds: str, at: int) -> int:
    numbers = [part.strip() for part in bounds.split(",")]
    if len(numbers) > 2 or not numbers[0].isascii() or not numbers[0].isdigit():
        raise _refusal(f"Malformed repetition at position {at}.")
    values = []
    for number in filter(None, numbers):
        if (
            len(number) > 6
            or not number.isascii()
            or not number.isdigit()
            or int(number) > MAX_REPEAT
        ):
            raise _refusal(f"A repetition at position {at} is malformed or above {MAX_REPEAT}.")
        values.append(int(number))
    return max(values)


def _refusal(message: str) -> EngineError:
    return EngineError(ErrorCode.INVALID_GRAMMAR, message)
