"""What does a request ask to be done to its logits before a token is chosen from them?"""

import numpy as np

from inference.backend.base import Model, Row
from inference.backend.grammar_sampler import read_preserved
from inference.backend.plugins import open_plugin
from inference.protocol.jobs import GenerationJob

BAN = np.float32(-np.inf)


class LogitEdits:
    """Bans, biases and plug-ins, in this order; raises EngineError where a plug-in refuses."""

    def __init__(self, model: Model, job: GenerationJob) -> None:
        # One by one: they are few, and numpy takes longer to look at a list of them.
        self._end_tokens = model.eog_tokens.tolist()
        self._suppressed = model.suppressed_tokens
        self._num_min = 2**31 if job.ignore_eos else job.min_tokens
        # Control tokens that are named as stop strings end a text like those of the model.
        self._num_before_stops = job.min_tokens
        self._stop_tokens = list(read_preserved(model, job.stop if job.min_tokens else ()))
        biases = job.sampling.logit_bias
        self._bias_tokens = np.array([token for token, _ in biases], np.int32)
        self._biases = np.array([BAN if bias is None else bias for _, bias in biases], np.float32)
        self._plugins = [open_plugin(plugin, model) for plugin in job.sampling.plugins]
        self._tokens = list(job.prompt_tokens) if self._plugins else []
        self._is_always_needed = bool(biases or self._plugins or self._suppressed.size)

    def are_needed(self, position: int) -> bool:
        """Whether the row for the token of this position would be changed at all."""
        return self._is_always_needed or position < self._num_min

    def apply(self, row: Row, position: int) -> None:
        """Change the row for the token of this position in place."""
        if self._biases.size:
            np.add.at(row, self._bias_tokens, self._biases)
        if self._suppressed.size:
            row[self._suppressed] = BAN
        if position < self._num_min:
            for token in self._end_tokens:
                row[token] = BAN
        if position < self._num_before_stops:
            for token in self._stop_tokens:
                row[token] = BAN
        for edit in self._plugins:
            edit(row, self._tokens)

    def accept(self, token: int) -> None:
        """Let plug-ins know that a token was chosen."""
        if self._plugins:
            self._tokens.append(token)
