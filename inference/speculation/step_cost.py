"""How long does a step take, by what it computes?"""

from collections.abc import Sequence
from dataclasses import dataclass

_DECAY = 0.995
_RIDGE = 1e-3
_MAX_SURPRISE = 4.0


@dataclass(frozen=True, slots=True)
class Load:
    """What a step computes: passes over the weights, and tokens."""

    num_passes: int
    num_tokens: int


def measure_load(slots: Sequence[int], counts: Sequence[int], *, is_unified: bool) -> Load:
    """Foresee how llama.cpp computes a batch that has ``counts[i]`` tokens of slot ``slots[i]``.

    With a unified cache that is one pass. Else a pass takes neighbouring slots, each with the
    same number of tokens, and leaves what is over to later ones.
    """
    num_tokens = sum(counts)
    if is_unified:
        return Load(1, num_tokens)
    left = list(zip(slots, counts, strict=True))
    num_passes = 0
    while left:
        run = 1
        while run < len(left) and left[run][0] == left[run - 1][0] + 1:
            run += 1
        taken = min(count for _, count in left[:run])
        rest = [(slot, count - taken) for slot, count in left[:run] if count > taken]
        left[:run] = rest
        num_passes += 1
    return Load(num_passes, num_tokens)


class StepCost:
    """Seconds per pass and per token, fitted to the steps so far; older ones fade.

    While all steps look alike, what a token adds cannot be told from them and is taken for
    nothing: guesses are then tried, and the first few of them tell.
    """

    def __init__(self) -> None:
        self._passes_passes = self._passes_tokens = self._tokens_tokens = 0.0
        self._passes_seconds = self._tokens_seconds = 0.0
        self.pass_seconds = 0.0
        self.token_seconds = 0.0

    @property
    def is_known(self) -> bool:
        """Whether any step was seen."""
        return self._passes_passes > 0

    def observe(self, load: Load, seconds: float) -> None:
        """Learn from a step; one that took absurdly long counts only as a long one."""
        if expected := self.predict(load):
            seconds = min(seconds, _MAX_SURPRISE * expected)
        passes, tokens = load.num_passes, load.num_tokens
        self._passes_passes = _DECAY * self._passes_passes + passes * passes
        self._passes_tokens = _DECAY * self._passes_tokens + passes * tokens
        self._tokens_tokens = _DECAY * self._tokens_tokens + tokens * tokens
        self._passes_seconds = _DECAY * self._passes_seconds + passes * seconds
        self._tokens_seconds = _DECAY * self._tokens_seconds + tokens * seconds
        self._fit()

    def predict(self, load: Load) -> float:
        """Give the seconds a step will take."""
        return self.pass_seconds * load.num_passes + self.token_seconds * load.num_tokens

    def _fit(self) -> None:
        """Solve the least squares of two unknowns, neither below zero."""
        tokens_tokens = self._tokens_tokens * (1 + _RIDGE)
        determinant = self._passes_passes * tokens_tokens - self._passes_tokens**2
        per_token = (
            self._passes_passes * self._tokens_seconds - self._passes_tokens * self._passes_seconds
        ) / determinant
        per_pass = (
            tokens_tokens * self._passes_seconds - self._passes_tokens * self._tokens_seconds
        ) / determinant
        if per_token < 0:
            per_token, per_pass = 0.0, self._passes_seconds / self._passes_passes
        elif per_pass < 0:
            per_token, per_pass = self._tokens_seconds / tokens_tokens, 0.0
        self.pass_seconds, self.token_seconds = per_pass, per_token
