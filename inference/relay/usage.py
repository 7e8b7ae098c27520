"""What jobs used that have ended: records that wait in a stream until the ledger has them.

The script that ends a job adds its record, once. Whoever moves records into the ledger reads them
again until they are dropped here, so that one who dies between the two costs nothing.
"""

from dataclasses import dataclass
from typing import Any

from inference.relay.connect import SyncRedis
from inference.relay.keys import USAGE


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """One job that has ended; times are Unix times of the server, in seconds.

    ``bill`` is what the job came with. ``first_at`` is None where it told no token and no vector,
    ``replica`` and ``node`` are empty where no slot took it. ``answer`` is its text, where the bill
    asks for that.
    """

    entry: str
    job: str
    bill: bytes
    deployment: str
    replica: str
    node: str
    num_prompt_tokens: int
    num_cached_tokens: int
    num_completion_tokens: int
    num_reasoning_tokens: int
    finish_reason: str
    error_code: str
    arrived_at: float
    first_at: float | None
    ended_at: float
    answer: str


def read_records(redis: SyncRedis, *, limit: int, after: str = "") -> list[UsageRecord]:
    """Give the oldest records that wait, or the oldest after an entry."""
    found: Any = redis.xrange(USAGE, min=f"({after}" if after else "-", count=limit)
    return [_read_record(entry.decode(), fields) for entry, fields in found]


def drop_records(redis: SyncRedis, entries: list[str]) -> None:
    """Forget records that the ledger has."""
    if entries:
        redis.xdel(USAGE, *entries)


def _read_record(entry: str, fields: dict[bytes, bytes]) -> UsageRecord:
    def text(name: bytes) -> str:
        return fields[name].decode(errors="replace")

    return UsageRecord(
        entry=entry,
        job=text(b"job"),
        bill=fields[b"bill"],
        deployment=text(b"deployment"),
        replica=text(b"replica"),
        node=text(b"node"),
        num_prompt_tokens=int(fields[b"prompt"]),
        num_cached_tokens=int(fields[b"cached"]),
        num_completion_tokens=int(fields[b"completion"]),
        num_reasoning_tokens=int(fields[b"reasoning"]),
        finish_reason=text(b"finish"),
        error_code=text(b"error"),
        arrived_at=float(fields[b"arrived"]),
        first_at=float(fields[b"first_at"]) if fields[b"first_at"] else None,
        ended_at=float(fields[b"ended"]),
        answer=text(b"answer"),
    )
