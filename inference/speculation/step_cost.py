"""How long does a step take, by what it computes?"""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.backend.passes import count_passes

_RIDGE = 1e-6
_LEARNING, _LEARNING_FASTER = 0.1, 0.4
_MAX_SURPRISE = 2.0
_MAX_LOADS = 64
_MAX_AGE = 500


@dataclass(frozen=True, slots=True)
class Load:
    """What a step computes: passes over the weights, and tokens."""

    num_passes: int
    num_tokens: int


def measure_load(slots: Sequence[int], counts: Sequence[int], *, is_unified: bool) -> Load:
    """Foresee how llama.cpp computes a batch that has ``counts[i]`` tokens of slot ``slots[i]``.

    With a unified cache that is one pass.
    """
    return Load(1 if is_unified else count_passes(slots, counts), sum(counts))


class StepCost:
    """Seconds by load, as seen lately; loads not seen are judged by a line through those that were.

    While all loads are alike, what a token adds cannot be told from them and is taken for nothing:
    guesses are then tried, and the first few of them tell. Loads that were not seen for long are
    forgotten, so that this happens again from time to time.
    """

    def __init__(self) -> None:
        self.pass_seconds = 0.0
        self.token_seconds = 0.0
        self._seen: dict[Load, _Seen] = {}
        self._now = 0

    @property
    def is_known(self) -> bool:
        """Whether any step was seen."""
        return bool(self._seen)

    def observe(self, load: Load, seconds: float) -> None:
        """Learn from a step. What made it slow may be something else, what made it fast is not."""
        self._now += 1
        known = self._seen.pop(load, None)
        if known is not None and known.seconds > 0:
            excess = min(seconds, _MAX_SURPRISE * known.seconds) - known.seconds
            seconds = known.seconds + (_LEARNING if excess > 0 else _LEARNING_FASTER) * excess
        # The dictionary is in order of use: the first load is the one not seen for longest.
        self._seen[load] = _Seen(seconds, self._now)
        oldest = next(iter(self._seen))
        if len(self._seen) > _MAX_LOADS or self._now - self._seen[oldest].at > _MAX_AGE:
            del self._seen[oldest]
        self._fit()

    def predict(self, load: Load) -> float:
        """Give the seconds a step will take."""
        known = self._seen.get(load)
        if known is not None:
            return known.seconds
        return self.pass_seconds * load.num_passes + self.token_seconds * load.num_tokens

    def _fit(self) -> None:
        """Solve the least squares of two unknowns, neither below zero; all loads count alike."""
        aa = ab = bb = ay = by = 0.0
        for load, known in self._seen.items():
            weight = 1 / max(known.seconds, 1e-9)
            a, b = load.num_passes * weight, load.num_tokens * weight
            aa, ab, bb, ay, by = aa + a * a, ab + a * b, bb + b * b, ay + a, by + b
        bb *= 1 + _RIDGE
        determinant = aa * bb - ab * ab
        per_pass, per_token = (bb * ay - ab * by) / determinant, (aa * by - ab * ay) / determinant
        if len({load.num_tokens / load.num_passes for load in self._seen}) == 1 or per_token < 0:
            per_pass, per_token = ay / aa, 0.0
        elif per_pass < 0:
            per_pass, per_token = 0.0, by / bb
        self.pass_seconds, self.token_seconds = per_pass, per_token


@dataclass(frozen=True, slots=True)
class _Seen:
    """How long a load takes, and when it was seen last, in steps."""

    seconds: float
    at: int
