"""Find stored responses: only ever those of one owner, but for those that somebody must end."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Sum

from llamero.conversations.models import ResponseState, StoredResponse

MAX_CHAIN = 1000
_TABLE = StoredResponse._meta.db_table
_CHAIN = f"""
    WITH RECURSIVE chain(id, previous, depth) AS (
        SELECT id, previous, 1 FROM {_TABLE} WHERE id = %s AND owner = %s
        UNION ALL
        SELECT one.id, one.previous, chain.depth + 1
        FROM {_TABLE} one JOIN chain ON one.id = chain.previous
        WHERE one.owner = %s AND chain.depth <= %s
    )
    SELECT one.*, chain.depth FROM {_TABLE} one JOIN chain ON one.id = chain.id
    ORDER BY chain.depth DESC
"""


@dataclass(frozen=True, slots=True)
class Holding:
    """What an owner has stored."""

    num_responses: int
    num_bytes: int


def measure_responses(owner: str) -> Holding:
    """Count what an owner has stored, in the index alone."""
    rows = StoredResponse.objects.filter(owner=owner)
    found = rows.aggregate(num=Count("used_at"), size=Sum("num_bytes"))
    return Holding(found["num"], found["size"] or 0)


def find_response(response_id: str, owner: str) -> StoredResponse | None:
    """Find a response of an owner."""
    return StoredResponse.objects.filter(id=response_id, owner=owner).first()


def read_chain(response_id: str, owner: str) -> list[StoredResponse]:
    """Read a response with all before it, the oldest first; empty where the owner has none.

    The first has a ``previous`` only where that is gone, or there are more than MAX_CHAIN.
    """
    arguments = [response_id, owner, owner, MAX_CHAIN - 1]
    return list(StoredResponse.objects.raw(_CHAIN, arguments))


def list_in_progress(limit: int) -> Sequence[StoredResponse]:
    """List responses in progress, which go on without their clients; the oldest first.

    Their contents are read when they are needed: this is asked each second.
    """
    in_progress = StoredResponse.objects.filter(state=ResponseState.IN_PROGRESS)
    return list(in_progress.defer("question", "outcome").order_by("created_at")[:limit])
