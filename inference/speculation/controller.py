"""How many guesses per sequence make a step worth its time?"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inference.speculation.step_cost import Load, StepCost, measure_load

_MARGIN_TO_START = 1.15
_MARGIN_TO_STAY = 1.03
_MIN_SHARE = 0.8
"""No sequence may lose more of its own speed than this leaves, whatever the others gain."""
_SURE = 0.995
_LEAST_LIKELY = 0.15
"""Less likely guesses bring next to nothing, however cheap a token seems to be."""
_FIRST_DRAFTS = 3
"""As many are tried while nothing is known of what they cost."""

Call = tuple[Sequence[int], Sequence[int]]
"""The slots of one batch, and how many tokens each has in it."""


@dataclass(frozen=True, slots=True)
class Chance:
    """A sequence that decodes, how many tokens can be guessed for it, and how likely each is.

    Fewer guesses than ``min_drafts`` are not wanted, nor any less likely than ``min_likely``.
    """

    slot: int
    max_drafts: int
    rate: float
    min_drafts: int = 0
    min_likely: float = 0.0

    def expect(self, num_drafts: int) -> float:
        """Give the tokens a step will bring: the guesses that hold, and one of the model's own."""
        rate = min(self.rate, _SURE)
        return float((1 - rate ** (num_drafts + 1)) / (1 - rate))

    def limit(self, least_likely: float) -> int:
        """Count the guesses that are at least so likely to be reached and right."""
        least = max(least_likely, self.min_likely)
        count = self.max_drafts
        if least > 0:
            rate = min(max(self.rate, 1e-6), _SURE)
            count = min(count, int(math.log(least) / math.log(rate)) if least < 1 else 0)
        return count


class Controller:
    """Weighs what guesses bring against what they cost, and leaves them where they do not pay.

    A guess is worth computing while its chance is above the share of a step that a token costs.
    The whole is then compared with a step without guesses, with a margin before they begin.
    """

    def __init__(self, *, is_unified: bool, max_drafts_per_step: int) -> None:
        self.cost = StepCost()
        self._is_unified = is_unified
        self._max_drafts_per_step = max_drafts_per_step
        self._is_on = False

    def observe(self, calls: Iterable[Call], seconds: float) -> None:
        """Learn what a step without prompts took, by the calls it was made of."""
        loads = [measure_load(*call, is_unified=self._is_unified) for call in calls]
        num_passes = sum(load.num_passes for load in loads)
        self.cost.observe(Load(num_passes, sum(load.num_tokens for load in loads)), seconds)

    def choose(self, chances: Sequence[Chance], round_seconds: float = 0.0) -> list[int]:
        """Give the number of guesses for each sequence, which come ordered by slot.

        ``round_seconds`` is what making one more guess for all of them costs.
        """
        none = [0] * len(chances)
        if not self.cost.is_known or not any(chance.max_drafts for chance in chances):
            return none
        slots = [chance.slot for chance in chances]
        plain_seconds = self.cost.predict(self._load(slots, none))
        plain_speed = len(chances) / plain_seconds if plain_seconds else 0.0
        margin = _MARGIN_TO_STAY if self._is_on else _MARGIN_TO_START
        best, best_speed = none, plain_speed * margin
        speed = plain_speed
        for _ in range(2):
            wanted = self._want(chances, speed)
            for counts in (wanted, self._level(chances, wanted)):
                seconds = self.cost.predict(self._load(slots, counts))
                seconds += round_seconds * max(counts)
                gains = [one.expect(count) for one, count in zip(chances, counts, strict=True)]
                speed = sum(gains) / seconds if seconds else math.inf
                is_fair = min(gains) * plain_seconds >= _MIN_SHARE * seconds
                if speed > best_speed and is_fair:
                    best, best_speed = counts, speed
        self._is_on = any(best)
        return best

    def _load(self, slots: Sequence[int], counts: Sequence[int]) -> Load:
        return measure_load(slots, [count + 1 for count in counts], is_unified=self._is_unified)

    def _want(self, chances: Sequence[Chance], speed: float) -> list[int]:
        """Take each guess that is likelier than its cost, as far as the rows of a step reach."""
        least_likely = max(self.cost.token_seconds * speed, _LEAST_LIKELY)
        counts = [chance.limit(least_likely) for chance in chances]
        if not self.cost.token_seconds:
            counts = [min(count, _FIRST_DRAFTS) for count in counts]
        if sum(counts) > self._max_drafts_per_step:
            share = self._max_drafts_per_step // sum(count > 0 for count in counts)
            counts = [min(count, share) for count in counts]
        return self._drop_short(chances, counts)

    def _level(self, chances: Sequence[Chance], counts: list[int]) -> list[int]:
        """Give all that guess the same count: llama.cpp computes equal slices in fewer passes."""
        level = min(filter(None, counts), default=0)
        return self._drop_short(chances, [min(count, level) for count in counts])

    def _drop_short(self, chances: Sequence[Chance], counts: list[int]) -> list[int]:
        """Leave guesses that are shorter than their sequence wants."""
        pairs = zip(chances, counts, strict=True)
        return [count if count >= chance.min_drafts else 0 for chance, count in pairs]
