"""All budgets there are, for those who watch them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

from django.db.models import Q

from inference.relay.limits import Counter, CounterKind, Period, Window
from llamero.accounts.targets import TARGETS
from llamero.limits.models import LimitSet
from llamero.usage.budgets import Budget, Measure

_BUDGETS = {
    "tokens_per_day": (Measure.TOKENS, Period.DAY),
    "tokens_per_month": (Measure.TOKENS, Period.MONTH),
    "money_per_day": (Measure.MONEY, Period.DAY),
    "money_per_month": (Measure.MONEY, Period.MONTH),
}
_KINDS = {Measure.TOKENS: CounterKind.SPENT_TOKENS, Measure.MONEY: CounterKind.MONEY}


def list_budgets(now: datetime) -> list[Budget]:
    """Give all budgets with their windows of now: ``settings.BUDGETS``; one query."""
    return list_budgets_of(Q(), now)


def list_budgets_of(meant: Q, now: datetime) -> list[Budget]:
    """Give the budgets of some limits with their windows of now; one query."""
    found = LimitSet.objects.filter(meant).select_related(*TARGETS)
    return [budget for limits in found for budget in _budgets_of(limits, now)]


def _budgets_of(limits: LimitSet, now: datetime) -> Iterator[Budget]:
    for name, (measure, period) in _BUDGETS.items():
        amount = getattr(limits, name)
        if amount is not None:
            window = Window(period, limits.time_zone)
            begins, ends = window.around(now.timestamp())
            kind = _KINDS[measure]
            yield Budget(
                subject=limits.subject,
                owner=limits.shown_target,
                measure=measure,
                period=period,
                amount=Decimal(amount),
                begins=datetime.fromtimestamp(begins, UTC),
                ends=datetime.fromtimestamp(ends, UTC),
                counter=f"{kind}:{Counter(kind, limits.subject, 0, window).name}",
                revision=limits.revision,
            )
