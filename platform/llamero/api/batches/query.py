"""Which part of a list of files or batches an address asks for."""

import re

from rest_framework.request import Request

from llamero.batches.selectors import Page
from llamero.errors import InvalidValue

_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_ID = 64


def read_page(request: Request, *, default: int, most: int) -> Page:
    """Read ``limit``, ``after`` and ``order``, the newest first unless it is asked otherwise."""
    query = request.query_params
    limit, order = query.get("limit", str(default)), query.get("order", "desc")
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= most:
        raise InvalidValue("limit", f"limit must be a number from 1 to {most}.")
    if order not in ("asc", "desc"):
        raise InvalidValue("order", "order must be asc or desc.")
    after = query.get("after", "")
    if len(after) > _MAX_ID or "\0" in after:
        raise no_such_place()
    return Page(int(limit), after, order == "asc")


def no_such_place() -> InvalidValue:
    """Say that a list cannot go on from there."""
    return InvalidValue("after", "after must be the id of an item of this list.")
