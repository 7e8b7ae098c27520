"""How does one sequence get from a row of logits to its next token?"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Choice, Model, Row
from inference.backend.draws import AGAIN, TOKEN
from inference.backend.grammar_sampler import Permission, Spelling
from inference.backend.logit_edits import LogitEdits
from inference.backend.logprobs import logits_to_logprob, probs_to_logprob
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import TokenLogprob
from inference.protocol.jobs import GenerationJob

_MAX_TRIES = 64


class Chooser(Protocol):
    """One way to choose a token."""

    def choose(self, row: Row, position: int, purpose: int) -> int:
        """Choose a token; -1 where none is possible. May scribble on nothing but its own."""
        ...

    def accept(self, token: int) -> None:
        """Remember a token that was chosen."""
        ...

    def probabilities(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give the tokens among which the last choice was made, and how likely each was."""
        ...

    def close(self) -> None:
        """Give native memory back; idempotent."""
        ...


class TokenSampler:
    """Edits the logits, chooses, has a grammar judge the choice, and tells how likely it was."""

    def __init__(
        self,
        model: Model,
        job: GenerationJob,
        chooser: Chooser,
        edits: LogitEdits,
        constraint: Permission | None = None,
    ) -> None:
        self._model, self._chooser = model, chooser
        self._edits, self._constraint = edits, constraint
        self._num_logprobs, self._is_post = job.num_logprobs, job.post_sampling_probs
        self._spelling = Spelling(model, (*job.sampling.preserved_tokens, *job.stop))
        self._position = 0

    def sample(self, row: Row) -> Choice:
        """Choose a token from the logits and remember it. May scribble on the row."""
        raw = row
        are_edits_needed = self._edits.are_needed(self._position)
        if self._num_logprobs is not None and not self._is_post:
            raw = row.copy() if are_edits_needed or self._constraint else row
        if are_edits_needed:
            self._edits.apply(row, self._position)
        token = self._choose(row)
        if token < 0:
            token = self._end_token(row)
            return Choice(token, self._logprob(raw, token, is_only=True), is_end=True)
        logprob = self._logprob(raw, token)
        self.accept(token)
        return Choice(token, logprob)

    def accept(self, token: int) -> None:
        """Remember a token as if it had been sampled: an earlier attempt chose it."""
        self._position += 1
        self._edits.accept(token)
        self._chooser.accept(token)
        if self._constraint:
            self._constraint.accept(token)

    def close(self) -> None:
        """Give the native memory back; idempotent."""
        self._chooser.close()

    def _choose(self, row: Row) -> int:
        """Choose freely first: a grammar judges one token much faster than all."""
        token = self._chooser.choose(row, self._position, TOKEN)
        if not self._constraint or (token >= 0 and self._constraint.allows(token)):
            return token
        for _ in range(_MAX_TRIES):
            self._constraint.restrict(row)
            token = self._chooser.choose(row, self._position, AGAIN)
            if token < 0 or self._constraint.allows(token):
                return token
        return -1

    def _end_token(self, row: Row) -> int:
        """End the text where nothing else is possible; a model that gives no numbers is broken."""
        if np.isnan(row.max()):
            raise EngineError(ErrorCode.ENGINE_FAILED, "The model's output is not a number.")
        if self._constraint and not self._constraint.may_end:
            raise EngineError(
                ErrorCode.INVALID_SAMPLING,
                "No token is left that may come next: the grammar permits none here, or only such "
                "as the model lacks or as other fields of the request ban.",
            )
        return int(self._model.eog_tokens[0]) if self._model.eog_tokens.size else 0

    def _logprob(self, raw: Row, token: int, *, is_only: bool = False) -> TokenLogprob | None:
        """Tell how likely a token was, if that was asked; ``is_only``: an end without a choice."""
        if self._num_logprobs is None:
            return None
        num_top, spelling = self._num_logprobs, b"" if is_only else self._spelling.of(token)
        if not self._is_post:
            return logits_to_logprob(self._model, raw, token, spelling, num_top)
        ids, probs = np.array([token], np.int32), np.ones(1, np.float32)
        if not is_only:
            ids, probs = self._chooser.probabilities()
        return probs_to_logprob(self._model, ids, probs, token, spelling, num_top)
