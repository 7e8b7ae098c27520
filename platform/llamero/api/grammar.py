"""Grammars (GBNF) of a request: bounds that are checked before any native code reads one."""

import re

from llamero.errors import InvalidValue

MAX_BYTES = 64 * 1024
MAX_DEPTH = 64
MAX_REPEAT = 1000
_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|\[(?:[^\]\\\n]|\\.)*\]|#[^\n]*|[()]|\{\s*(\d*)\s*(?:,\s*(\d*)\s*)?\}'
)

# Any JSON object; white space is bounded so that a model cannot go on with blanks for ever.
JSON_OBJECT = r"""
root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (pair ("," ws pair)*)? "}"
pair ::= string ":" ws value ws
array ::= "[" ws (value ws ("," ws value ws)*)? "]"
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?
ws ::= | " " | "\n" [ \t]{0,12}
"""


def check_grammar(text: str) -> str:
    """Give the grammar back if it is small, shallow and repeats within reason."""
    if len(text.encode()) > MAX_BYTES:
        raise _invalid(f"it is larger than {MAX_BYTES} bytes")
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "(":
            depth += 1
            if depth > MAX_DEPTH:
                raise _invalid(f"it nests deeper than {MAX_DEPTH} at position {match.start()}")
        elif token == ")":
            depth -= 1
        elif any(count and (len(count) > 9 or int(count) > MAX_REPEAT) for count in match.groups()):
            raise _invalid(f"it repeats more than {MAX_REPEAT} times at position {match.start()}")
    return text


def _invalid(problem: str) -> InvalidValue:
    return InvalidValue("grammar", f"The grammar is refused: {problem}.", "invalid_grammar")
