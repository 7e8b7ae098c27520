"""What a request found left of its limits, and how its answer tells that."""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

from inference.relay.limits import CounterKind, Reading
from llamero.limits.words import write_duration

_TOKENS = (CounterKind.TOKENS, CounterKind.SPENT_TOKENS)
_REQUESTS = (CounterKind.REQUESTS,)
_OPENAI = {"requests": _REQUESTS, "tokens": _TOKENS}
_ANTHROPIC = {
    "requests": _REQUESTS,
    "tokens": _TOKENS,
    "input-tokens": (CounterKind.INPUT,),
    "output-tokens": (CounterKind.OUTPUT,),
}

# A request and all that is done for it share one list.
_current: ContextVar[list[Reading] | None] = ContextVar("limit_readings", default=None)


def begin_readings() -> None:
    """Have what this request finds noted from now on."""
    _current.set([])


def note_readings(readings: Iterable[Reading]) -> None:
    """Note what was found; what is found later counts."""
    noted = _current.get()
    if noted is not None and (found := list(readings)):
        noted[:] = found


def openai_headers() -> dict[str, str]:
    """Give what was found as OpenAI's clients read it."""
    headers: dict[str, str] = {}
    for name, reading in _tightest(_OPENAI).items():
        headers[f"x-ratelimit-limit-{name}"] = str(reading.counter.bound)
        headers[f"x-ratelimit-remaining-{name}"] = str(reading.left)
        headers[f"x-ratelimit-reset-{name}"] = write_duration(reading.reset_seconds)
    return headers


def anthropic_headers() -> dict[str, str]:
    """Give what was found as Anthropic's clients read it."""
    headers: dict[str, str] = {}
    now = datetime.now(UTC)
    for name, reading in _tightest(_ANTHROPIC).items():
        reset = now + timedelta(seconds=reading.reset_seconds)
        headers[f"anthropic-ratelimit-{name}-limit"] = str(reading.counter.bound)
        headers[f"anthropic-ratelimit-{name}-remaining"] = str(reading.left)
        headers[f"anthropic-ratelimit-{name}-reset"] = f"{reset:%Y-%m-%dT%H:%M:%SZ}"
    return headers


def _tightest(groups: Mapping[str, tuple[CounterKind, ...]]) -> dict[str, Reading]:
    """Give of each group the limit of which least is left."""
    noted = _current.get() or []
    chosen: dict[str, Reading] = {}
    for name, kinds in groups.items():
        found = [reading for reading in noted if reading.counter.kind in kinds]
        if found:
            chosen[name] = min(found, key=lambda one: (one.left, -one.reset_seconds))
    return chosen
