"""Which request is being served?

By the client's own name for it, where that is well-formed, or by ours; and over which route.
"""

import logging
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

REQUEST_ID_HEADER = "x-request-id"
_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:/+=@-]{0,127}")
_current: ContextVar[str] = ContextVar("request_id", default="")
_route: ContextVar[str] = ContextVar("request_route", default="")


def begin_request(offered: str) -> str:
    """Name the request of this context from now on; gives the name."""
    request_id = offered if _WELL_FORMED.fullmatch(offered) else make_request_id()
    _current.set(request_id)
    return request_id


def make_request_id() -> str:
    """Make a new name."""
    return f"req_{secrets.token_hex(12)}"


def current_request_id() -> str:
    """Give the name of the request being served; empty outside of any."""
    return _current.get()


def note_route(route: str) -> None:
    """Say over which route the request of this context came."""
    _route.set(route)


def current_route() -> str:
    """Give the route of the request being served; empty outside of any."""
    return _route.get()


@contextmanager
def naming_request(request_id: str) -> Iterator[None]:
    """Have what is logged within named after a request."""
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)


class AddRequestId(logging.Filter):
    """Gives each log record ``request_id``: the name in brackets and a space, or nothing."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        request_id = _current.get()
        record.request_id = f"[{request_id}] " if request_id else ""
        return True
