"""Reasoning that has gone on for long enough is ended: its closing mark comes next."""

import numpy as np

from inference.backend.base import Model, Row
from inference.backend.grammar_sampler import Permission, Spelling
from inference.protocol.sampling import ReasoningLimit
from inference.text.detokenizer import Detokenizer


class LimitedReasoning:
    """Permits what another one does, or everything, until the limit; then one token at a time.

    Tokens are counted behind the opening mark. No character is cut in two.
    """

    def __init__(self, model: Model, limit: ReasoningLimit, inner: Permission | None) -> None:
        self._limit, self._inner = limit, inner
        self._spelling = Spelling(model, (limit.opening, limit.closing))
        self._ending = model.tokenize(limit.ending, add_special=False, parse_special=True)
        self._forced: list[int] = []
        self._characters = Detokenizer()
        self._text = ""
        self._num_left = limit.max_tokens
        self._is_open, self._is_over = limit.is_open, False
        self._end_in_time()

    @property
    def may_end(self) -> bool:
        """Whether the text may end here."""
        return not self._forced and (self._inner is None or self._inner.may_end)

    def allows(self, token: int) -> bool:
        """Tell whether a token may come next."""
        if self._forced:
            return token == self._forced[0]
        return self._inner is None or self._inner.allows(token)

    def restrict(self, row: Row) -> None:
        """Ban what may not come next."""
        if self._forced:
            row[:] = -np.inf
            row[self._forced[0]] = 0
        elif self._inner is not None:
            self._inner.restrict(row)

    def accept(self, token: int) -> None:
        """Note that a token was chosen."""
        if self._inner is not None:
            self._inner.accept(token)
        if self._forced:
            self._forced.pop(0)
        elif not self._is_over:
            self._read(self._characters.push(self._spelling.of(token)))

    def _read(self, text: str) -> None:
        """Follow the text as far as the end of the reasoning."""
        self._text += text
        if self._is_open:
            self._num_left -= 1
            self._is_over = self._limit.closing in self._text
            self._text = self._text[-len(self._limit.closing) :]
        else:
            seen = self._text.lstrip()
            self._is_open = seen.startswith(self._limit.opening)
            self._is_over = not self._is_open and not self._limit.opening.startswith(seen)
        self._end_in_time()

    def _end_in_time(self) -> None:
        is_due = self._is_open and not self._is_over and self._num_left <= 0
        if is_due and not self._characters.num_held_bytes:
            self._forced, self._is_over = list(self._ending), True
