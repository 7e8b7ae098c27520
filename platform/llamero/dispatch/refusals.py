"""Refusals of the last moment: who asks again within it hears the same, before any work is done."""

import time
from collections.abc import Callable

from inference.protocol.errors import EngineError, ErrorCode
from inference.relay.limits import CounterKind, LimitReached

# Short beside what a full queue lasts, so that no slot goes without work for it.
MOMENT_SECONDS = 0.2
MAX_KEPT = 4096
_FULL = (ErrorCode.QUEUE_FULL, ErrorCode.KEY_QUEUE_FULL)


class Refusals:
    """What each owner was told of full queues, and of too many requests a minute.

    Under overload most requests end here.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str], tuple[float, EngineError]] = {}

    def note(self, deployment: str, owner: str, error: EngineError) -> None:
        """Keep a refusal if it is about a full queue, or would meet any request."""
        if error.code in _FULL or _is_of_requests(error):
            if len(self._told) >= MAX_KEPT:
                self._told.clear()
            moment = min(MOMENT_SECONDS, error.retry_after or MOMENT_SECONDS)
            self._told[deployment, owner] = (self._clock() + moment, error)

    def repeat(self, deployment: str, owner: str) -> None:
        """Raise what the owner has just been told."""
        if (told := self._told.get((deployment, owner))) is None:
            return
        until, error = told
        if self._clock() >= until:
            del self._told[deployment, owner]
            return
        if isinstance(error, LimitReached):
            raise error.again()
        wait = error.retry_after
        raise EngineError(error.code, error.message, is_retryable=True, retry_after=wait)


def _is_of_requests(error: EngineError) -> bool:
    return isinstance(error, LimitReached) and error.counter.kind is CounterKind.REQUESTS
