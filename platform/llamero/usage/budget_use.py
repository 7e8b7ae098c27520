"""What is used of many budgets: two queries for each kind of subject, however many there are.

Sums are by the beginnings of windows, of which time zones make some dozens.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import F, Q, QuerySet, Sum, Value

from llamero.usage.budgets import Budget, Measure
from llamero.usage.models import LedgerRow, UsageHour
from llamero.usage.selectors import HOUR

# Of more subjects all rows of a window are read: databases bound how many may be named.
MAX_NAMED = 500
_TOKENS = F("num_prompt_tokens") + F("num_completion_tokens")
_Used = Mapping[tuple[int, datetime, Measure], Decimal]


def read_used(budgets: Iterable[Budget]) -> dict[str, Decimal]:
    """Give what the ledger says is used of budgets, by their names."""
    kinds: dict[str, list[Budget]] = defaultdict(list)
    for budget in budgets:
        kinds[budget.subject.partition(":")[0]].append(budget)
    used: dict[str, Decimal] = {}
    for kind, same in kinds.items():
        sums = _sum_kind(kind, same)
        for budget in same:
            key = (_number_of(budget), budget.begins, budget.measure)
            used[budget.name] = sums.get(key, Decimal(0))
    return used


def _sum_kind(kind: str, budgets: Sequence[Budget]) -> _Used:
    numbers = {_number_of(budget) for budget in budgets}
    subject = Value(0) if kind == "all" else F(f"{kind}_id")
    meant = Q() if kind == "all" or len(numbers) > MAX_NAMED else Q(**{f"{kind}_id__in": numbers})
    begins = sorted({budget.begins for budget in budgets})
    total: dict[tuple[int, datetime, Measure], Decimal] = defaultdict(Decimal)
    # Whole hours are summed already.
    first_hours = {since: _first_hour(since) for since in begins}
    hours = UsageHour.objects.filter(meant, hour__gte=min(first_hours.values()))
    _add(total, hours, subject, {since: Q(hour__gte=first_hours[since]) for since in begins})
    parts = {
        since: Q(ended_at__gte=since, ended_at__lt=hour)
        for since, hour in first_hours.items()
        if hour != since
    }
    if parts:
        rows = LedgerRow.objects.filter(meant, reduce(or_, parts.values()))
        _add(total, rows, subject, parts)
    return total


def _add(
    total: dict[tuple[int, datetime, Measure], Decimal],
    rows: QuerySet[Any],
    subject: Any,
    conditions: Mapping[datetime, Q],
) -> None:
    """Add the sums of rows, by subject and by the windows that they are in."""
    sums: dict[str, Sum] = {}
    for index, condition in enumerate(conditions.values()):
        sums[f"tokens_{index}"] = Sum(_TOKENS, filter=condition)
        sums[f"money_{index}"] = Sum("cost", filter=condition)
    for row in rows.order_by().annotate(subject=subject).values("subject").annotate(**sums):
        for index, since in enumerate(conditions):
            for measure in Measure:
                used = row[f"{measure}_{index}"] or 0
                total[row["subject"], since, measure] += Decimal(used)


def _first_hour(since: datetime) -> datetime:
    hour = since.replace(minute=0, second=0, microsecond=0)
    return hour if hour == since else hour + HOUR


def _number_of(budget: Budget) -> int:
    return int(budget.subject.partition(":")[2] or 0)
