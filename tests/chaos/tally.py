"""What a trial counts: what was tried, what the trouble met, and what was broken."""

from collections import Counter
from dataclasses import dataclass, field

MAX_NOTES = 6


@dataclass(slots=True)
class Tally:
    """Counts of one trial. Trouble that met nothing proves nothing, so that is a failure too."""

    num_tries: int = 0
    num_struck: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def judge(self, is_kept: bool, otherwise: str) -> None:
        """Count a try; ``otherwise`` says what is wrong if the promise was not kept."""
        self.num_tries += 1
        if not is_kept:
            self.reasons[otherwise] += 1

    def strike(self, number: int = 1) -> None:
        """Count what the trouble really met: streams cut, jobs that lost their replica, …"""
        self.num_struck += number

    @property
    def num_failures(self) -> int:
        """Count what was broken, a trial that proved nothing included."""
        return self.reasons.total() + (not self.num_struck)

    @property
    def notes(self) -> list[str]:
        """Say what was broken, most frequent first."""
        said = [f"{number} x {reason}" for reason, number in self.reasons.most_common(MAX_NOTES)]
        if not self.num_struck:
            said.append("the trouble met nothing, so nothing was proved")
        return said
