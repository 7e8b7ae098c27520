"""One page of a list of items."""

from typing import Any

from llamero.api.responses.items import Item
from llamero.api.responses.query import PageQuery
from llamero.errors import InvalidValue


def make_page(items: list[Item], query: PageQuery) -> dict[str, Any]:
    """Give the part that was asked for of items that come oldest first.

    ``before`` alone gives the page that ends there; else pages begin at the start or ``after``.
    """
    ordered = items if query.is_ascending else items[::-1]
    start = _find(ordered, query.after, "after") + 1 if query.after else 0
    end = _find(ordered, query.before, "before") if query.before else len(ordered)
    if query.before and not query.after:
        start = max(0, end - query.limit)
    page = ordered[start:end][: query.limit]
    has_more = start > 0 if query.before and not query.after else start + len(page) < end
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": has_more,
    }


def _find(items: list[Item], item_id: str, param: str) -> int:
    for index, item in enumerate(items):
        if item["id"] == item_id:
            return index
    raise InvalidValue(param, f"{param} must be the id of an item of this list.")
