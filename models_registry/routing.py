"""Which of a model's deployments takes a request: by shares, and alike for whoever is alike. Pure.

The choice is a weighted rendezvous: each deployment draws a number from who asks and its own name,
and the best one wins. So somebody stays with a deployment as long as it serves, a share that
changes moves only as many as it must, and nobody has to remember anything.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

from models_registry.models.deployment import DeploymentState

SERVES_SOON = frozenset({DeploymentState.READY.value, DeploymentState.SLEEPING.value})
_LOADS = frozenset({DeploymentState.LOADING.value})


class Candidate(Protocol):
    """What a choice depends on."""

    @property
    def deployment(self) -> str:
        """Its name."""

    @property
    def state(self) -> str:
        """How it is."""

    @property
    def share(self) -> int:
        """How much of the requests it takes, in relation to the others; 0: it stands by."""


Chosen = TypeVar("Chosen", bound=Candidate)


def choose_route(candidates: Sequence[Chosen], asker: str) -> Chosen | None:
    """Choose who serves ``asker``; None where no replica serves, or will without help.

    One that loads is waited for only where no other one serves: a new version takes its share
    when it is there.
    """
    for states in (SERVES_SOON, _LOADS):
        able = [one for one in candidates if one.state in states]
        if able:
            return _draw([one for one in able if one.share] or able, asker)
    return None


def _draw(candidates: Sequence[Chosen], asker: str) -> Chosen:
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda one: (_distance(one, asker), one.deployment))


def _distance(candidate: Candidate, asker: str) -> float:
    """Draw from an exponential distribution: the least of such draws falls to each by its share."""
    seed = f"{asker}\n{candidate.deployment}".encode(errors="replace")
    number = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest())
    return -math.log((number + 1) / 2**64) / max(1, candidate.share)
