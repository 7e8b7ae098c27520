"""A grammar that sleeps until the text wakes it, and how a job's grammar is opened."""

from collections.abc import Sequence

import numpy as np

from inference.backend.base import Model, Row
from inference.backend.grammar_sampler import (
    MAX_STEPS,
    STEPS_PER_TOKEN,
    Constraint,
    Permission,
    Spelling,
)
from inference.backend.grammars import Grammars
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.sampling import GrammarTrigger, SamplingParams
from inference.text.grammar import Budget
from inference.text.grammar.triggers import (
    MAX_TRIGGERS,
    Progress,
    Trigger,
    pattern_trigger,
    word_trigger,
)


class LazyConstraint:
    """Permits everything until a trigger, then what the grammar permits from there on.

    A token that completes a trigger must fit the grammar with all it spells; else it is refused
    like one that a woken grammar refuses.
    """

    def __init__(
        self,
        grammar: Constraint,
        spelling: Spelling,
        tokens: frozenset[int],
        triggers: Sequence[Trigger],
    ) -> None:
        self._grammar, self._spelling = grammar, spelling
        self._tokens, self._triggers = tokens, triggers
        self._progress = [trigger.start() for trigger in triggers]
        self._text = bytearray()
        self._budget = Budget(MAX_STEPS)
        self._is_awake = False
        self._refused: list[int] = []

    @property
    def may_end(self) -> bool:
        """Whether the text may end here."""
        return not self._is_awake or self._grammar.may_end

    def allows(self, token: int) -> bool:
        """Tell whether a token may come next."""
        if self._is_awake:
            return self._grammar.allows(token)
        if self._spelling.is_end(token):
            return True
        is_allowed = self._fits(token)
        if not is_allowed:
            self._refused.append(token)
        return is_allowed

    def restrict(self, row: Row) -> None:
        """Ban what the grammar bans; before that, what was refused."""
        if self._is_awake:
            self._grammar.restrict(row)
        else:
            row[self._refused] = -np.inf

    def accept(self, token: int) -> None:
        """Note that a token was chosen; it may wake the grammar."""
        if self._is_awake or token in self._tokens:
            self._is_awake = self._is_awake or self._grammar.allows(token)
            self._grammar.accept(token)
            return
        self._refused.clear()
        if self._spelling.is_end(token):
            return
        data = self._spelling.of(token)
        self._progress, start = self._search(data)
        self._text += data
        self._budget.left = min(MAX_STEPS, self._budget.left + STEPS_PER_TOKEN)
        if start is not None and self._grammar.can_begin_with(bytes(self._text[start:])):
            self._grammar.begin_with(bytes(self._text[start:]))
            self._is_awake = True

    def _fits(self, token: int) -> bool:
        if token in self._tokens:
            return self._grammar.allows(token)
        data = self._spelling.of(token)
        _, start = self._search(data)
        if start is None:
            return True
        return self._grammar.can_begin_with(bytes(self._text[start:] + data))

    def _search(self, data: bytes) -> tuple[list[Progress], int | None]:
        """Search on for all triggers; give the earliest place from which the grammar holds."""
        progress, starts = [], []
        for trigger, before in zip(self._triggers, self._progress, strict=True):
            after, start = trigger.push(before, data, len(self._text), self._budget)
            progress.append(after)
            if start is not None:
                starts.append(start)
        return progress, min(starts, default=None)


def open_constraint(model: Model, grammars: Grammars, params: SamplingParams) -> Permission | None:
    """Build what a job asks for; raises EngineError."""
    if not params.grammar:
        return None
    spelling = Spelling(model, params.preserved_tokens)
    constraint = Constraint(grammars.find(params.grammar), spelling)
    if not params.is_grammar_lazy:
        return constraint
    if not 0 < len(params.grammar_triggers) <= MAX_TRIGGERS:
        raise EngineError(
            ErrorCode.INVALID_GRAMMAR,
            f"A lazy grammar needs from 1 to {MAX_TRIGGERS} grammar_triggers.",
            param="grammar_triggers",
        )
    tokens, triggers = _read_triggers(model, params.grammar_triggers)
    return LazyConstraint(constraint, spelling, tokens, triggers)


def _read_triggers(
    model: Model, given: Sequence[GrammarTrigger]
) -> tuple[frozenset[int], list[Trigger]]:
    """Give the tokens and the texts that wake; a word that is a control token is that token."""
    named = model.control_tokens()
    tokens, triggers = set(), []
    for trigger in given:
        token = named.get(trigger.word, trigger.token) if trigger.word else trigger.token
        if token >= 0:
            _check_token(token, model)
            tokens.add(token)
        elif trigger.word:
            triggers.append(word_trigger(trigger.word))
        else:
            triggers.append(pattern_trigger(trigger.pattern))
    return frozenset(tokens), triggers


def _check_token(token: int, model: Model) -> None:
    if token >= model.facts().num_vocab:
        raise EngineError(
            ErrorCode.INVALID_TOKEN_ID,
            f"grammar_triggers names token {token}, outside the vocabulary.",
            param="grammar_triggers",
        )
