"""How often are the guesses for one sequence right?"""

from bisect import bisect_right
from collections.abc import Sequence

_LEARNING = 0.12
_FORGETTING = 0.01


class Acceptance:
    """Moving estimates of the chance that a guessed token is the one the model chooses.

    Guesses differ in strength: ``bounds`` part them into classes, and ``priors`` say what is
    believed of each class at first. Every token counts for which there was a guess, computed or
    not: what would have been right is known as soon as the token is. Without any guesses the
    estimates drift back to what was believed at first, so that guessing gets another chance.
    """

    __slots__ = ("_bounds", "_priors", "_rates")

    def __init__(self, bounds: Sequence[int], priors: Sequence[float]) -> None:
        assert len(priors) == len(bounds) + 1
        self._bounds, self._priors = bounds, priors
        self._rates = list(priors)

    def rate(self, strength: int) -> float:
        """Give the chance of a guess of some strength."""
        return self._rates[bisect_right(self._bounds, strength)]

    def learn(self, strength: int, *, is_right: bool) -> None:
        """Note that a guess met its token."""
        at = bisect_right(self._bounds, strength)
        self._rates[at] += _LEARNING * (is_right - self._rates[at])

    def forget(self) -> None:
        """Note that a token came for which nothing was guessed."""
        for at, prior in enumerate(self._priors):
            self._rates[at] += _FORGETTING * (prior - self._rates[at])
