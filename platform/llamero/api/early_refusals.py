"""That a queue is full is told again before any work is done, while many requests beat on it.

Under overload most requests are refused, and what a refusal costs is taken from the answers that
are being made. So whoever was just told that a queue is full, or that requests are too many, and
asks for the same model at the same address, hears it again for a moment, before the key is looked
up and the body validated.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from inference.protocol.errors import EngineError, ErrorCode
from inference.relay.limits import CounterKind, LimitReached
from llamero.api.errors import describe_exception, error_response
from llamero.api.paths import Dialect
from llamero.api.resuming import IDEMPOTENCY_HEADER
from llamero.errors import LlameroError

# Short beside what a full queue lasts, so that no slot goes without work for it.
MOMENT_SECONDS = 0.2
# What nobody was told in earnest for so long says nothing any more: there may be room for many.
LASTING_SECONDS = 1.0
MAX_KEPT = 4096
_FULL = (ErrorCode.QUEUE_FULL, ErrorCode.KEY_QUEUE_FULL)
_CREDENTIALS = ("HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_API_KEY")
_Name = tuple[str | None, ...]


class _Peek(msgspec.Struct):
    model: Any = None


_peek = msgspec.json.Decoder(_Peek).decode


class _Refusal(NamedTuple):
    """What was told in earnest, when, in which words, and until when it is told again."""

    error: LlameroError
    headers: dict[str, str]
    dialect: Dialect
    told_at: float
    until: float

    def respond(self) -> HttpResponse:
        """Tell it again. The body is made anew: one dialect's has the request's id in it."""
        response = error_response(self.error, self.dialect)
        for name, value in self.headers.items():
            response[name] = value
        return response


class EarlyRefusals:
    """What was told to whom, and where."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[_Name, _Refusal] = {}

    def note(
        self,
        request: HttpRequest,
        failure: Exception | None,
        response: HttpResponseBase,
        dialect: Dialect,
    ) -> None:
        """Keep what a request was told, if any other would have been told the same; else forget."""
        is_refused = isinstance(failure, EngineError) and _meets_all(failure)
        if not (is_refused or self._told) or (name := _name(request)) is None:
            return
        if failure is not None and is_refused:
            if len(self._told) >= MAX_KEPT:
                self._told.clear()
            now = self._clock()
            self._told[name] = _Refusal(
                error=describe_exception(failure),
                headers=dict(response.headers),
                dialect=dialect,
                told_at=now,
                until=now + MOMENT_SECONDS,
            )
        else:
            self._told.pop(name, None)

    def repeat(self, request: HttpRequest) -> HttpResponse | None:
        """Give what was just told to a request like this one.

        Each moment one of them is let through, to see whether there is room by now.
        """
        if not self._told or (name := _name(request)) not in self._told:
            return None
        refusal = self._told[name]
        now = self._clock()
        if now >= refusal.told_at + LASTING_SECONDS:
            del self._told[name]
            return None
        if now >= refusal.until:
            self._told[name] = refusal._replace(until=now + MOMENT_SECONDS)
            return None
        return refusal.respond()


def _meets_all(error: EngineError) -> bool:
    """Tell whether an error is about a full queue, or about too many requests of any kind."""
    if isinstance(error, LimitReached):
        return error.counter.kind is CounterKind.REQUESTS
    return error.code in _FULL


def _name(request: HttpRequest) -> _Name | None:
    """Tell requests apart by who asks where for which model; None for one to be looked at."""
    is_json = request.method == "POST" and request.content_type == "application/json"
    if not is_json or IDEMPOTENCY_HEADER in request.headers:
        # One with an idempotency key may be answered already; what is no JSON may be a large file.
        return None
    try:
        model = _peek(request.body).model
    except (msgspec.DecodeError, RecursionError):
        return None
    credentials = [request.META.get(name) for name in _CREDENTIALS]
    if not any(credentials):
        # Those of a page are in its cookie, those of a batch nowhere: they look all alike here.
        return None
    return (request.get_full_path(), str(model), *credentials)


early_refusals = EarlyRefusals()
