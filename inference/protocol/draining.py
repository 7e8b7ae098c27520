"""How long may a replica that is told to stop finish its work? Every part of a node must agree."""

from collections.abc import Mapping

DRAIN_VARIABLE = "LLAMERO_DRAIN_SECONDS"
DEFAULT_DRAIN_SECONDS = 4.5


def read_drain_seconds(environment: Mapping[str, str]) -> float:
    """Give the seconds; raises ValueError, fit for the operator, where they are no number."""
    text = environment.get(DRAIN_VARIABLE) or str(DEFAULT_DRAIN_SECONDS)
    try:
        return float(text)
    except ValueError:
        message = f"{DRAIN_VARIABLE} is {text!r}, but must be a number of seconds."
        raise ValueError(message) from None
