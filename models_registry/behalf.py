"""For whom the program is at work, when what somebody asked for is done later."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_owner: ContextVar[str] = ContextVar("registry_owner", default="")


def current_owner() -> str:
    """Give who asked, as the data plane names callers (``user:7``); empty for nobody."""
    return _owner.get()


@contextmanager
def working_for(owner: str) -> Iterator[None]:
    """Have what is changed meanwhile be what somebody asked for."""
    token = _owner.set(owner)
    try:
        yield
    finally:
        _owner.reset(token)
