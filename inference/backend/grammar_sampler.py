"""Which tokens does the grammar of one sequence permit next?"""

from typing import Protocol

import numpy as np

from inference.backend.base import Model, Row
from inference.backend.grammars import Grammar
from inference.text.grammar import Budget, State

# Steps of the automaton, about a microsecond each: what a sequence may save up, and so the most
# that one token may cost, and what it earns with each token.
MAX_STEPS = 50_000
STEPS_PER_TOKEN = 2000


class Permission(Protocol):
    """What may come next in one sequence.

    Samplers choose freely, ask ``allows`` about their choice, and only where it is refused have
    ``restrict`` ban what is impossible before they choose again. A grammar that costs too much to
    follow fails its sequence: any call may raise EngineError INVALID_GRAMMAR.
    """

    @property
    def may_end(self) -> bool:
        """Whether the text may end here."""
        ...

    def allows(self, token: int) -> bool:
        """Tell whether a token may come next."""
        ...

    def restrict(self, row: Row) -> None:
        """Ban in a row of logits what may not come next: all, or at least what was refused."""
        ...

    def accept(self, token: int) -> None:
        """Note that a token was chosen."""
        ...


class Spelling:
    """How tokens are spelled for one sequence: as text, but some control tokens by their names."""

    def __init__(self, model: Model, preserved: tuple[str, ...] = ()) -> None:
        self._model = model
        self.preserved = read_preserved(model, preserved)

    def of(self, token: int) -> bytes:
        """Give the bytes of a token; those that end a text have none."""
        if self._model.is_end_of_generation(token):
            return b""
        return self.preserved.get(token) or self._model.text_bytes(token)

    def is_end(self, token: int) -> bool:
        """Tell whether a token ends the text."""
        return self._model.is_end_of_generation(token)


class Constraint:
    """Where one sequence stands in a grammar that holds from its first token on."""

    def __init__(self, grammar: Grammar, spelling: Spelling) -> None:
        self._grammar, self._spelling = grammar, spelling
        self._budget = Budget(MAX_STEPS)
        self._state = grammar.start(self._budget)
        # What all texts begin with is looked at here already, before the engine's turn.
        grammar.mask(self._state, self._budget)
        self._judged: tuple[int, State] | None = None

    @property
    def may_end(self) -> bool:
        """Whether the text may end here."""
        return self._state.is_end

    def allows(self, token: int) -> bool:
        """Tell whether a token may come next."""
        if self._spelling.is_end(token):
            return self._state.is_end
        return not self._after(token).is_dead

    def restrict(self, row: Row) -> None:
        """Ban in a row of logits whatever may not come next."""
        allowed = self._grammar.mask(self._state, self._budget)
        for token in self._spelling.preserved:
            allowed[token] = self.allows(token)
        row[~allowed] = -np.inf

    def accept(self, token: int) -> None:
        """Note that a token was chosen."""
        if not self._spelling.is_end(token):
            self._state = self._after(token)
        self._judged = None
        self._budget.left = min(MAX_STEPS, self._budget.left + STEPS_PER_TOKEN)

    def can_begin_with(self, text: bytes) -> bool:
        """Tell whether a text may stand at the beginning."""
        return not self._beginning(text).is_dead

    def begin_with(self, text: bytes) -> None:
        """Go to where a text leads from the beginning."""
        self._state, self._judged = self._beginning(text), None

    def _beginning(self, text: bytes) -> State:
        return self._grammar.walk(self._grammar.start(self._budget), text, self._budget)

    def _after(self, token: int) -> State:
        if self._judged is None or self._judged[0] != token:
            spelling = self._spelling.of(token)
            self._judged = (token, self._grammar.step(self._state, token, spelling, self._budget))
        return self._judged[1]


def read_preserved(model: Model, names: tuple[str, ...]) -> dict[int, bytes]:
    """Give the bytes of control tokens by id; names of no control token change nothing."""
    known = model.control_tokens() if names else {}
    return {
        known[name]: name.encode("utf-8", "replace")
        for name in names
        if name in known and not model.is_end_of_generation(known[name])
    }
