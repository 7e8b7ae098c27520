"""How much may be guessed for a request? llama-server's ``speculative.*`` fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llamero.errors import InvalidValue

_MOST = 1024


@dataclass(frozen=True, slots=True)
class GuessLimits:
    """At most and at least how many tokens a guess may have, and how likely each must be.

    None leaves the most to the deployment; more than it allows is not guessed.
    """

    most: int | None = None
    least: int = 0
    likely: float = 0.0


NO_LIMITS = GuessLimits()


def read_guess_limits(body: Mapping[str, Any]) -> GuessLimits:
    """Read the fields, whose names have dots in them; a null is an absent one."""
    likely = _read(body, "speculative.p_min", 1, int | float)
    return GuessLimits(
        most=_read(body, "speculative.n_max", _MOST, int),
        least=_read(body, "speculative.n_min", _MOST, int) or 0,
        likely=float(likely or 0),
    )


def _read(body: Mapping[str, Any], name: str, most: int, kind: Any) -> Any:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value <= most:
        what = "an integer" if kind is int else "a number"
        raise InvalidValue(name, f"{name} must be {what} between 0 and {most}.")
    return value
