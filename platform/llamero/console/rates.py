"""How fast it goes: counters of replicas, looked at again and again, per second. Pure."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from inference.protocol.replicas import EngineStats, ReplicaStatus

# Heartbeats come each second: over a few of them, single late ones do not show.
WINDOW_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second: tokens written, tokens of prompts computed, and jobs that ended."""

    tokens: float = 0.0
    prompt_tokens: float = 0.0
    jobs: float = 0.0


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    counters: dict[str, tuple[str, EngineStats]]


@dataclass(slots=True)
class Speedometer:
    """Remembers the looks of the last seconds."""

    _looks: deque[_Look] = field(default_factory=deque)

    def note(self, at: float, statuses: Iterable[ReplicaStatus]) -> None:
        """Take a look."""
        counters = {one.replica: (one.deployment, one.stats) for one in statuses}
        self._looks.append(_Look(at, counters))
        while len(self._looks) > 2 and at - self._looks[1].at >= WINDOW_SECONDS:
            self._looks.popleft()

    def rates(self, deployment: str | None = None) -> Rates | None:
        """Give the rates of a deployment, or of all; None before the second look.

        A replica that was not there before counts from now on: what it did meanwhile is not known.
        """
        if len(self._looks) < 2:
            return None
        first, last = self._looks[0], self._looks[-1]
        pairs = [
            (first.counters[replica][1], stats)
            for replica, (name, stats) in last.counters.items()
            if deployment in (None, name) and replica in first.counters
        ]
        seconds = last.at - first.at
        return Rates(
            tokens=_sum((new.num_decoded_tokens, old.num_decoded_tokens) for old, new in pairs)
            / seconds,
            prompt_tokens=_sum((new.num_prompt_tokens, old.num_prompt_tokens) for old, new in pairs)
            / seconds,
            jobs=_sum((_num_ended(new), _num_ended(old)) for old, new in pairs) / seconds,
        )


def _sum(counts: Iterable[tuple[int, int]]) -> int:
    """Add up how far counters have come; one that was set back began anew."""
    return sum(new - old if new >= old else new for new, old in counts)


def _num_ended(stats: EngineStats) -> int:
    return stats.num_jobs_done + stats.num_jobs_failed + stats.num_jobs_cancelled
