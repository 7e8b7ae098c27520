"""What the address of a request says beside its path."""

import re
from dataclasses import dataclass

from rest_framework.request import Request

from llamero.api.numbering import no_such_event
from llamero.errors import InvalidValue

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
_FLAGS = {"": False, "false": False, "true": True}
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which part of a list is asked for, and which way round."""

    after: str
    before: str
    limit: int
    is_ascending: bool


def read_flag(request: Request, name: str) -> bool:
    """Read a query parameter that is true or false."""
    word = request.query_params.get(name, "").lower()
    if word not in _FLAGS:
        raise InvalidValue(name, f"{name} must be true or false.")
    return _FLAGS[word]


def read_starting_after(request: Request) -> int:
    """Give the number of the last event a client has; -1 where it has none."""
    text = request.query_params.get("starting_after", "")
    if not text:
        return -1
    if not _NUMBER.fullmatch(text):
        raise no_such_event("starting_after")
    return int(text)


def read_page_query(request: Request) -> PageQuery:
    """Read ``after``, ``before``, ``limit`` and ``order``."""
    query = request.query_params
    limit, order = query.get("limit", str(DEFAULT_LIMIT)), query.get("order", "desc")
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MAX_LIMIT:
        raise InvalidValue("limit", f"limit must be a number from 1 to {MAX_LIMIT}.")
    if order not in ("asc", "desc"):
        raise InvalidValue("order", "order must be asc or desc.")
    return PageQuery(query.get("after", ""), query.get("before", ""), int(limit), order == "asc")
