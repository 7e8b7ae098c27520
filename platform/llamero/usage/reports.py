"""What was used in a period, by time and by who or what used it: read from the sums of hours."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from django.db.models import F, QuerySet, Sum
from django.db.models.functions import TruncDay

from llamero.usage.models import UsageHour
from llamero.usage.models.hour import COUNTS
from llamero.usage.names import find_names
from llamero.usage.selectors import EVERYBODY, HOUR, Subject

DAY = timedelta(days=1)


class Group(StrEnum):
    """What a report has a line for each of."""

    HOUR = "hour"
    DAY = "day"
    MODEL = "model"
    KEY = "key"
    USER = "user"
    TEAM = "team"

    @property
    def is_time(self) -> bool:
        """Whether its lines are moments."""
        return self in (Group.HOUR, Group.DAY)


@dataclass(frozen=True, slots=True)
class Period:
    """From one moment to another, the second one not included; whole hours."""

    begins: datetime
    ends: datetime

    @property
    def num_hours(self) -> int:
        """How many hours it has."""
        return (self.ends - self.begins) // HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLine:
    """What was used under one heading, in one currency. ``names`` has a text for each group."""

    time: datetime | None
    ids: Mapping[str, int]
    names: Mapping[str, str] = field(default_factory=dict)
    currency: str
    num_jobs: int
    num_failed: int
    num_cancelled: int
    num_prompt_tokens: int
    num_cached_tokens: int
    num_completion_tokens: int
    num_reasoning_tokens: int
    cost: Decimal
    num_begun: int
    ttft_ms: int
    duration_ms: int

    @property
    def num_tokens(self) -> int:
        """Prompts and answers."""
        return self.num_prompt_tokens + self.num_completion_tokens

    @property
    def mean_ttft_seconds(self) -> float | None:
        """How long first tokens took, on average."""
        return self.ttft_ms / self.num_begun / 1000 if self.num_begun else None


def read_report(
    period: Period, groups: Sequence[Group], subject: Subject = EVERYBODY
) -> list[ReportLine]:
    """Give the lines of a report, in the order of time, the most used first: a few queries."""
    found = list(_query(period, groups, subject))
    names = {
        group: find_names(group, {row[f"{group}_id"] for row in found})
        for group in groups
        if not group.is_time
    }
    lines = [_make_line(row, groups, names) for row in found]
    return sorted(
        lines, key=lambda one: (one.time or datetime.min.replace(tzinfo=UTC), -one.num_tokens)
    )


def total_of(lines: Iterable[ReportLine]) -> list[ReportLine]:
    """Add lines up: one for each currency, at least one."""
    totals: dict[str, dict[str, Any]] = {}
    for line in lines:
        total = totals.setdefault(line.currency, dict.fromkeys(COUNTS, 0))
        for name in COUNTS:
            total[name] += getattr(line, name)
    totals = totals or {"": dict.fromkeys(COUNTS, 0)}
    return [
        ReportLine(time=None, ids={}, currency=currency, **counts)
        for currency, counts in sorted(totals.items())
    ]


def merge_unpriced(lines: Sequence[ReportLine]) -> list[ReportLine]:
    """Put what cost nothing, for want of a price, to what did under the same heading.

    Where several currencies are there it stays apart: it belongs to none of them.
    """
    by_heading: dict[tuple[Any, ...], list[ReportLine]] = {}
    for line in lines:
        by_heading.setdefault((line.time, *sorted(line.ids.items())), []).append(line)
    merged: list[ReportLine] = []
    for found in by_heading.values():
        currencies = {one.currency for one in found}
        if len(found) == 2 and "" in currencies:
            sums = {name: sum(getattr(one, name) for one in found) for name in COUNTS}
            found = [replace(found[0], currency=max(currencies), **sums)]
        merged += found
    return merged


def _query(period: Period, groups: Sequence[Group], subject: Subject) -> QuerySet[Any, Any]:
    columns: list[str] = []
    hours = UsageHour.objects.filter(
        subject.condition, hour__gte=period.begins, hour__lt=period.ends
    ).order_by()
    for group in groups:
        if group.is_time:
            time = TruncDay("hour", tzinfo=UTC) if group is Group.DAY else F("hour")
            hours = hours.annotate(time=time)
            columns.append("time")
        else:
            columns.append(f"{group}_id")
    sums = {f"sum_{name}": Sum(name) for name in COUNTS}
    found: QuerySet[Any, Any] = hours.values(*columns, "currency").annotate(**sums)
    return found


def _make_line(
    row: Mapping[str, Any], groups: Sequence[Group], names: Mapping[Group, Mapping[int, str]]
) -> ReportLine:
    subjects = [group for group in groups if not group.is_time]
    sums: dict[str, Any] = {name: row[f"sum_{name}"] or 0 for name in COUNTS}
    return ReportLine(
        time=row.get("time"),
        ids={group: row[f"{group}_id"] for group in subjects},
        names={group: names[group].get(row[f"{group}_id"], "") for group in subjects},
        currency=row["currency"],
        **sums,
    )
