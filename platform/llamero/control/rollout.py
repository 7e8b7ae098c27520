"""Which replicas of a deployment stay while it changes or moves: pure.

A replica that serves and is no longer what is wanted stays until another one serves in its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from llamero.control.world import Standing, number_of


@dataclass(frozen=True, slots=True)
class Turn:
    """Who stays for good, who stays until replaced, and how many are to be started.

    ``failed`` stay, too, while others are tried in their place: where they are they do not work.
    """

    keep: tuple[Standing, ...]
    outgoing: tuple[Standing, ...]
    num_missing: int
    failed: tuple[Standing, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether every replica that was started serves: then the next one may be replaced."""
        return not self.failed and all(standing.is_ready for standing in self.keep)

    def describe(self, num_wanted: int, generation: int, hindrance: str = "") -> str:
        """Say how far a change has come, and what is in its way; empty where none is under way."""
        num_there = sum(one.is_ready for one in self.keep)
        if num_there >= num_wanted or not (self.outgoing or hindrance):
            return ""
        count = f"{num_there} of {num_wanted} replica{'s' if num_wanted > 1 else ''}"
        if all(one.is_fresh for one in self.outgoing):
            words = (
                f"Serves, and is to move: {count} in place" if self.outgoing else f"{count} serve"
            )
        else:
            words = f"Rolling out: {count} at generation {generation}"
        return f"{words}. {hindrance}".rstrip() if hindrance else f"{words}."


def take_turn(standings: Sequence[Standing], num_wanted: int) -> Turn:
    """Sort a deployment's replicas."""
    fresh = [one for one in standings if one.is_fresh and not one.is_leaving]
    keep = sorted((one for one in fresh if not one.has_failed), key=_order)[:num_wanted]
    num_serving = sum(one.is_ready for one in keep)
    others = [one for one in standings if one.is_leaving or not one.is_fresh]
    serving = sorted((one for one in others if one.is_ready), key=_order)
    outgoing = serving[: max(0, num_wanted - num_serving)]
    failed = [one for one in fresh if one.has_failed and num_serving < num_wanted]
    return Turn(tuple(keep), tuple(outgoing), num_wanted - len(keep), tuple(failed))


def _order(standing: Standing) -> tuple[bool, bool, int, int]:
    """The ready first, then those to come; of the ready the busiest."""
    return (
        not standing.is_ready,
        not standing.is_coming,
        -standing.num_running,
        number_of(standing.spec.replica),
    )
