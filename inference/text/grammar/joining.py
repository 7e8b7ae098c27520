"""Several grammars as parts of one."""

import re
from collections.abc import Mapping

# What a grammar is made of, as far as names must be told from all else.
_PIECES = re.compile(
    r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[^}]*\}|!?<[^>]*>|#[^\r\n]*|([A-Za-z0-9-]+)',
    re.DOTALL,
)


def join_grammars(root: str, parts: Mapping[str, str]) -> str:
    """Give the grammar of a root rule that may name each part, whose rules keep to themselves.

    The parts must be sound. Their names are letters.
    """
    renamed = (_rename(text, name) for name, text in parts.items())
    return "\n".join((f"root ::= {root}", *renamed))


def _rename(text: str, part: str) -> str:
    """Put a part's name before each rule's; its root is called as the part is."""

    def rename(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0]
        return part if name == "root" else f"{part}-{name}"

    return _PIECES.sub(rename, text)
