"""Which token is the most likely one, after bans and biases?"""

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Choice, Model, Row
from inference.backend.logprobs import logits_to_logprob
from inference.protocol.events import Candidate, TokenLogprob
from inference.protocol.jobs import GenerationJob

BAN = np.float32(-np.inf)


class LogitEdits:
    """What a job asks to be done to its logits before anything else: bans and biases."""

    def __init__(self, job: GenerationJob, eog_tokens: NDArray[np.int32]) -> None:
        self._eog_tokens = eog_tokens
        self._bans_eog = job.ignore_eos
        self._num_min = job.min_tokens
        self._num_seen = 0
        self._bias_tokens = np.array([token for token, _ in job.sampling.logit_bias], np.int32)
        self._biases = np.array([bias for _, bias in job.sampling.logit_bias], np.float32)

    @property
    def is_needed(self) -> bool:
        """Whether the next row would be changed at all."""
        return bool(self._bans_eog or self._num_seen < self._num_min or self._biases.size)

    def apply(self, row: Row) -> None:
        """Change the next row in place."""
        if self._biases.size:
            np.add.at(row, self._bias_tokens, self._biases)
        if self._bans_eog or self._num_seen < self._num_min:
            row[self._eog_tokens] = BAN

    def advance(self) -> None:
        """Note that a token was chosen."""
        self._num_seen += 1


class GreedySampler:
    """Take the most likely token with numpy alone: no native memory, about 10 us a row."""

    def __init__(self, model: Model, job: GenerationJob, eog_tokens: NDArray[np.int32]) -> None:
        self._model = model
        self._edits = LogitEdits(job, eog_tokens)
        self._num_logprobs = job.num_logprobs
        self._is_post = job.post_sampling_probs

    def sample(self, row: Row) -> Choice:
        """Choose the first of the most likely tokens."""
        raw = row
        if self._edits.is_needed:
            raw = row.copy() if self._num_logprobs is not None else row
            self._edits.apply(row)
        token = int(row.argmax())
        self._edits.advance()
        if self._num_logprobs is None:
            return Choice(token)
        num_top = min(self._num_logprobs, 1) if self._is_post else self._num_logprobs
        logprob = logits_to_logprob(self._model, raw, token, num_top)
        return Choice(token, certain(logprob, num_top) if self._is_post else logprob)

    def accept(self, token: int) -> None:
        """Count a token that an earlier attempt chose."""
        self._edits.advance()

    def close(self) -> None:
        """Do nothing: there is no native memory."""


def certain(logprob: TokenLogprob, num_top: int) -> TokenLogprob:
    """Give the same token as the only one left: greedy sampling leaves no other."""
    chosen = Candidate(logprob.chosen.id, logprob.chosen.bytes_latin1, 0.0)
    return TokenLogprob(chosen, (chosen,) if num_top else ())
