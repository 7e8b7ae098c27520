"""How much of budgets is left, for people to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Q
from django.utils import timezone

from llamero.limits.budgets import list_budgets_of
from llamero.usage.budget_use import read_used
from llamero.usage.budgets import Budget, Measure
from llamero.usage.money import write_money


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    """A budget, and what the ledger says is used of it: requests that run are not in it yet."""

    budget: Budget
    used: Decimal

    @property
    def name(self) -> str:
        """What it is of: tokens of this day."""
        return f"{self.budget.measure} of this {self.budget.period}"

    @property
    def words(self) -> str:
        """How much is left of how much."""
        amount = self.budget.amount
        left = max(Decimal(0), amount - self.used)
        return f"{self._write(left)} of {self._write(amount)} left"

    @property
    def percent_used(self) -> int:
        """How much is used; more than 100 where the last request took more than was left."""
        return int(self.used * 100 / self.budget.amount)

    @property
    def ends(self) -> datetime:
        """When it begins anew."""
        return self.budget.ends

    def _write(self, amount: Decimal) -> str:
        if self.budget.measure is Measure.TOKENS:
            return f"{int(amount):,}"
        return write_money(amount)


def read_left(meant: Q) -> Sequence[BudgetLeft]:
    """Read what is left of the budgets of some limits."""
    budgets = list_budgets_of(meant, timezone.now())
    used = read_used(budgets)
    return [BudgetLeft(one, used[one.name]) for one in budgets]
