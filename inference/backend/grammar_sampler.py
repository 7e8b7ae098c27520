"""Which tokens does the grammar of one sequence permit next?"""

import numpy as np

from inference.backend.base import Model, Row
from inference.backend.grammars import Grammar, Grammars
from inference.protocol.sampling import SamplingParams
from inference.text.grammar import Budget, State

# Steps of the automaton, about a microsecond each: what a sequence may save up, and so the most
# that one token may cost, and what it earns with each token.
MAX_STEPS = 50_000
STEPS_PER_TOKEN = 2000


class Constraint:
    """Where one sequence stands in its grammar.

    Samplers choose freely, ask ``allows`` about their choice, and only where it is refused have
    ``restrict`` ban all that is impossible before they choose again. A grammar that costs too
    much to follow fails its sequence: any call may raise EngineError INVALID_GRAMMAR.
    """

    def __init__(self, model: Model, grammar: Grammar) -> None:
        self._model, self._grammar = model, grammar
        self._budget = Budget(MAX_STEPS)
        self._state = grammar.start(self._budget)
        self._judged: tuple[int, State] | None = None

    @property
    def may_end(self) -> bool:
        """Whether the text may end here."""
        return self._state.is_end

    def allows(self, token: int) -> bool:
        """Tell whether a token may come next."""
        if self._model.is_end_of_generation(token):
            return self._state.is_end
        return not self._after(token).is_dead

    def restrict(self, row: Row) -> None:
        """Ban in a row of logits whatever may not come next."""
        row[~self._grammar.mask(self._state, self._budget)] = -np.inf

    def accept(self, token: int) -> None:
        """Note that a token was chosen."""
        if not self._model.is_end_of_generation(token):
            self._state = self._after(token)
        self._judged = None
        self._budget.left = min(MAX_STEPS, self._budget.left + STEPS_PER_TOKEN)

    def _after(self, token: int) -> State:
        if self._judged is None or self._judged[0] != token:
            spelling = self._model.text_bytes(token)
            self._judged = (token, self._grammar.step(self._state, token, spelling, self._budget))
        return self._judged[1]


def open_constraint(model: Model, grammars: Grammars, params: SamplingParams) -> Constraint | None:
    """Build what a job asks for; raises EngineError."""
    return Constraint(model, grammars.find(params.grammar)) if params.grammar else None
