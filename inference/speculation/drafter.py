"""What makes guesses, and what is asked of it?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Want:
    """How many guesses the sequence in a slot shall get at most."""

    slot: int
    num_tokens: int
    min_likely: float = 0.0


@dataclass(frozen=True, slots=True)
class Guess:
    """The tokens that may come next, and how much speaks for them."""

    tokens: tuple[int, ...] = ()
    strength: int = 0


NO_GUESS = Guess()


class Drafter(Protocol):
    """Guesses how the sequences in the slots go on. Owned by the engine's thread."""

    is_free: bool
    """Whether guesses cost next to nothing, so that they can be made before they are wanted."""

    bounds: tuple[int, ...]
    """The strengths from which on a guess belongs to the next better class."""

    priors: tuple[float, ...]
    """How likely a guess of each class is right while nothing is known of a sequence."""

    round_seconds: float
    """What one more guess for all slots costs; 0 while that is not known."""

    def open(self, slot: int, tokens: list[int]) -> None:
        """Attend to another sequence; ``tokens`` is its own list, which grows."""
        ...

    def close(self, slot: int) -> None:
        """Forget the sequence in a slot."""
        ...

    def draft(self, wants: Sequence[Want]) -> list[Guess]:
        """Guess for slots in ascending order; any may get fewer tokens than wanted, or none."""
        ...

    def close_all(self) -> None:
        """Free what the drafter holds; nothing may be asked of it afterwards."""
        ...
