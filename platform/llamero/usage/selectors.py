"""What was used, as sums: by hours where that will do, else by rows; and what is on its way."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from inference.relay.connect import SyncRedis
from inference.relay.usage import UsageRecord, read_records
from llamero.usage.ledger import find_known, lock_ledger
from llamero.usage.models import LedgerRow, UsageHour
from llamero.usage.rows import make_entries

HOUR = timedelta(hours=1)
_PAGE = 1000
_TOKENS = ("num_prompt_tokens", "num_cached_tokens", "num_completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whose usage is meant; all that is given must hold, and nothing means everybody's."""

    key_id: int | None = None
    user_id: int | None = None
    team_id: int | None = None
    model_id: int | None = None

    @property
    def condition(self) -> Q:
        """Give it as a condition on rows and hours."""
        named = {name: getattr(self, name) for name in self.__slots__}
        return Q(**{name: pk for name, pk in named.items() if pk is not None})

    def includes(self, row: LedgerRow) -> bool:
        """Whether a row is of it."""
        named = ((name, getattr(self, name)) for name in self.__slots__)
        return all(pk is None or getattr(row, name) == pk for name, pk in named)


EVERYBODY = Subject()


@dataclass(frozen=True, slots=True)
class UsageSum:
    """What was used together. ``cost`` adds what there is, whatever the currency."""

    num_jobs: int = 0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_completion_tokens: int = 0
    cost: Decimal = Decimal(0)

    @property
    def num_tokens(self) -> int:
        """Prompts and answers."""
        return self.num_prompt_tokens + self.num_completion_tokens

    def __add__(self, other: "UsageSum") -> "UsageSum":
        return UsageSum(
            self.num_jobs + other.num_jobs,
            self.num_prompt_tokens + other.num_prompt_tokens,
            self.num_cached_tokens + other.num_cached_tokens,
            self.num_completion_tokens + other.num_completion_tokens,
            self.cost + other.cost,
        )


def sum_usage(subject: Subject, since: datetime, *, redis: SyncRedis | None = None) -> UsageSum:
    """Sum the jobs that have ended since a moment.

    With ``redis`` also those whose records are on their way to the ledger: each job counts once,
    and one that had ended before the call counts.
    """
    if redis is None:
        return _sum_ledger(subject, since)
    waiting = _read_waiting(redis)
    with lock_ledger():
        known = _find_known(waiting)
        total = _sum_ledger(subject, since)
    fresh = [record for record in waiting if record.job not in known]
    return total + _sum_rows(subject, since, fresh)


def _read_waiting(redis: SyncRedis) -> list[UsageRecord]:
    found: list[UsageRecord] = []
    while True:
        page = read_records(redis, limit=_PAGE, after=found[-1].entry if found else "")
        found += page
        if len(page) < _PAGE:
            return found


def _find_known(records: list[UsageRecord]) -> set[str]:
    known: set[str] = set()
    for first in range(0, len(records), 500):
        known |= find_known(record.job for record in records[first : first + 500])
    return known


def _sum_ledger(subject: Subject, since: datetime) -> UsageSum:
    """Sum whole hours, and rows before the first of them."""
    hour = since.replace(minute=0, second=0, microsecond=0)
    whole = hour if hour == since else hour + HOUR
    hours = UsageHour.objects.filter(subject.condition, hour__gte=whole)
    total = _aggregate(hours, num_jobs=Sum("num_jobs"))
    if whole == since:
        return total
    rows = LedgerRow.objects.filter(subject.condition, ended_at__gte=since, ended_at__lt=whole)
    return total + _aggregate(rows, num_jobs=Count("pk"))


def _aggregate(rows: QuerySet[Any], **sums: Any) -> UsageSum:
    found = rows.aggregate(**sums, cost=Sum("cost"), **{name: Sum(name) for name in _TOKENS})
    told: dict[str, Any] = {name: value or 0 for name, value in found.items()}
    return UsageSum(**told)


def _sum_rows(subject: Subject, since: datetime, records: list[UsageRecord]) -> UsageSum:
    total = UsageSum()
    for row, _, _ in make_entries(records):
        if subject.includes(row) and row.ended_at >= since:
            total += UsageSum(
                1,
                row.num_prompt_tokens,
                row.num_cached_tokens,
                row.num_completion_tokens,
                row.cost or Decimal(0),
            )
    return total
