"""How often are the guesses for one sequence right?"""

_LEARNING = 0.12
_FORGETTING = 0.01


class Acceptance:
    """A moving estimate of the chance that a guessed token is the one the model chooses.

    Every token counts for which there was a guess, computed or not: what would have been right
    is known as soon as the token is. Without any guesses the estimate drifts back to what was
    believed at first, so that a source of guesses gets another chance.
    """

    __slots__ = ("_prior", "num_accepted", "num_drafted", "rate")

    def __init__(self, prior: float) -> None:
        self._prior = self.rate = prior
        self.num_drafted = 0
        self.num_accepted = 0

    def count_draft(self, num_drafted: int, num_accepted: int) -> None:
        """Note guesses that were computed; all behind the first wrong one were in vain."""
        self.num_drafted += num_drafted
        self.num_accepted += num_accepted

    def learn(self, *, is_right: bool) -> None:
        """Note that a guess met its token."""
        self.rate += _LEARNING * (is_right - self.rate)

    def forget(self) -> None:
        """Note that a token came for which nothing was guessed."""
        self.rate += _FORGETTING * (self._prior - self.rate)
