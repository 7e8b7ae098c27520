"""When does a text wake a lazy grammar, and from where on does the grammar hold?

A pattern is searched in the text as it grows, all beginnings at once, byte by byte, so that no
pattern can take more than a step per place and byte. The grammar holds from the beginning of the
pattern's first group, or of all that matched where there is no group; ``^`` and ``$`` tie a
pattern to the beginning of the text and to the end of the latest token.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar.automaton import Automaton, Budget, State
from inference.text.grammar.checks import ROOT
from inference.text.grammar.nodes import Node, Text
from inference.text.grammar.regex import BadPattern, parse_search_pattern

MAX_TRIGGERS = 64
# Where more beginnings are open at once than these, the latest are let go.
MAX_OPEN = 64
_SYMBOL = re.compile(r"\\.|\[\^?(?:\\.|[^\]\\])*\]|\(\?:|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pattern's search is: what may stand before its group, and the groups begun.

    ``begun`` are pairs of a state and the position where it began, the first first.
    """

    before: tuple[State, ...]
    begun: tuple[tuple[State, int], ...]


class Trigger:
    """One pattern that wakes a grammar."""

    def __init__(self, before: Node, body: Node, *, is_anchored: bool, is_at_end: bool) -> None:
        self._before, self._body = _automaton(before), _automaton(body)
        self._is_anchored, self._is_at_end = is_anchored, is_at_end
        self._begin = self._before.start(_first_budget())
        self._body_begin = self._body.start(_first_budget())

    def start(self) -> Progress:
        """Give the search in the empty text."""
        return Progress((self._begin,), ()) if self._is_anchored else Progress((), ())

    def push(
        self, progress: Progress, data: bytes, position: int, budget: Budget
    ) -> tuple[Progress, int | None]:
        """Search on in the bytes from a position; give where the grammar begins, once found."""
        before, begun = progress.before, progress.begun
        for at, byte in enumerate(data, position):
            if not self._is_anchored:
                before = (*before, self._begin)
            if len(begun) < MAX_OPEN and any(state.is_end for state in before):
                begun = (*begun, (self._body_begin, at))
            before = tuple(dict.fromkeys(_advance(self._before, before, byte, budget)))
            states: dict[State, int] = {}
            for (_, start), after in zip(
                begun, _steps(self._body, begun, byte, budget), strict=True
            ):
                if not after.is_dead:
                    states.setdefault(after, start)
            begun = tuple(states.items())
            if not self._is_at_end or at == position + len(data) - 1:
                found = [start for state, start in begun if state.is_end]
                if found:
                    return Progress(before, begun), min(found)
        return Progress(before, begun), None


def word_trigger(word: str) -> Trigger:
    """Give the trigger of a word, wherever it stands."""
    return Trigger(Text(""), Text(word), is_anchored=False, is_at_end=False)


def pattern_trigger(pattern: str) -> Trigger:
    """Give the trigger of a regular expression; raises EngineError."""
    is_anchored, is_at_end = pattern.startswith("^"), _ends_with_anchor(pattern)
    bare = pattern[is_anchored : len(pattern) - is_at_end]
    try:
        at = _first_group(bare, is_tied=len(bare) < len(pattern))
        before, body = parse_search_pattern(bare[:at]), parse_search_pattern(bare[at:])
    except BadPattern as error:
        raise EngineError(
            ErrorCode.INVALID_GRAMMAR,
            f"The pattern of a grammar trigger {error}.",
            param="grammar_triggers",
        ) from None
    return Trigger(before, body, is_anchored=is_anchored, is_at_end=is_at_end)


def _first_group(pattern: str, *, is_tied: bool) -> int:
    """Find the first group that captures; 0 where there is none, or only alternatives."""
    depth = 0
    for found in _SYMBOL.finditer(pattern):
        match found[0]:
            case "(?:":
                depth += 1
            case ")":
                depth -= 1
            case "(" if depth:
                raise BadPattern("is not supported: a group captures within one that does not")
            case "(":
                return found.start()
            case "|" if not depth and is_tied:
                raise BadPattern("is not supported: it ties alternatives to the text's ends")
            case "|" if not depth:
                return 0
    return 0


def _ends_with_anchor(pattern: str) -> bool:
    bare = pattern.removesuffix("$")
    num_escapes = len(bare) - len(bare.rstrip("\\"))
    return len(bare) < len(pattern) and num_escapes % 2 == 0


def _advance(
    automaton: Automaton, states: Sequence[State], byte: int, budget: Budget
) -> list[State]:
    kind = automaton.byte_classes[byte]
    after = [automaton.step(state, kind, budget) for state in states]
    return [state for state in after if not state.is_dead]


def _steps(
    automaton: Automaton, begun: Sequence[tuple[State, int]], byte: int, budget: Budget
) -> list[State]:
    kind = automaton.byte_classes[byte]
    return [automaton.step(state, kind, budget) for state, _ in begun]


def _automaton(node: Node) -> Automaton:
    return Automaton({ROOT: node}, lambda _: None)


def _first_budget() -> Budget:
    return Budget(10_000)
