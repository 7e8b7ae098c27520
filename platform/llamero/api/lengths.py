"""How long an answer may be, by each of the names that clients have for it."""

from collections.abc import Mapping
from typing import Any

from llamero.errors import InvalidValue

# Of several the first counts, as at llama-server.
LENGTH_NAMES = ("n_predict", "max_completion_tokens", "max_tokens")
# llama-server's word for no limit but the context's, and an older one.
NO_LIMIT = -1
LEAST_LENGTH = -2


def read_length(fields: Mapping[str, Any], default: int = NO_LIMIT) -> int:
    """Give the length that validated fields ask for, as it was asked for."""
    return int(next((fields[name] for name in LENGTH_NAMES if name in fields), default))


def limit_of(length: int) -> int | None:
    """Give the most tokens of an answer; None where only the context limits it."""
    return None if length < 0 else length


def read_limit(fields: Mapping[str, Any], default: int = NO_LIMIT) -> int | None:
    """Give the most tokens of an answer that has at least one."""
    limit = limit_of(read_length(fields, default))
    if limit == 0:
        name = next(name for name in LENGTH_NAMES if name in fields)
        raise InvalidValue(name, f"{name} must be at least 1, or -1 for no limit.")
    return limit
