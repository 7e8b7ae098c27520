"""Who can hold a computed prefix? The cells of a slot, or a saved state outside the KV cache."""

from collections.abc import Hashable
from dataclasses import dataclass

from inference.cache.disk_shelf import DiskCopy

Scope = Hashable
"""What two jobs must have in common to share cells: a salt, and whatever alters the numbers."""


class Cells:
    """What a slot's KV sequence holds: the first ``num_computed`` of ``tokens``.

    ``tokens`` is the running sequence's own list, so that a step costs the cache nothing. While a
    slot is leased the first ``num_promised`` of them are known to others, computed or not.
    Who has leased a slot and not begun to compute has left in it what others computed.
    Nothing behind ``num_usable`` may be reused. At ``pause_at`` tokens a step ends in any case, so
    that what cannot be cut can be copied then.
    """

    __slots__ = (
        "is_computing",
        "is_leased",
        "num_computed",
        "num_promised",
        "num_usable",
        "order",
        "pause_at",
        "scope",
        "slot",
        "tokens",
        "used_at",
    )

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.is_leased = self.is_computing = False
        self.order = 0
        self.used_at = 0
        self.forget()

    def forget(self) -> None:
        """Hold nothing."""
        self.scope: Scope | None = None
        self.tokens: list[int] = []
        self.num_computed = self.num_promised = self.num_usable = self.pause_at = 0

    @property
    def num_tokens(self) -> int:
        """How many tokens can be lent now."""
        return min(self.num_computed, self.num_usable)


class Blob:
    """The state of a sequence of ``num_tokens``, in host memory, on disk, or on its way there."""

    __slots__ = ("disk", "num_bytes", "num_tokens", "scope", "state")

    def __init__(self, scope: Scope, num_tokens: int, state: memoryview) -> None:
        self.scope = scope
        self.num_tokens = num_tokens
        self.num_bytes = state.nbytes
        self.state: memoryview | None = state
        self.disk: DiskCopy | None = None


Holder = Cells | Blob


@dataclass(frozen=True, slots=True)
class Match:
    """A usable beginning: who holds it, its length now, and once its holder has caught up.

    ``order`` tells the lease of a slot apart from a later one of the same slot.
    """

    holder: Holder | None
    num_tokens: int
    num_promised: int
    order: int = 0


NO_MATCH = Match(None, 0, 0)
