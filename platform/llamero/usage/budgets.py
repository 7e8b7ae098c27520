"""Budgets as alerts see them; whoever sets budgets lists them: ``settings.BUDGETS``."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from django.conf import settings
from django.utils.module_loading import import_string

from llamero.usage.selectors import EVERYBODY, Subject, sum_usage


class Measure(StrEnum):
    """What a budget is of."""

    TOKENS = "tokens"
    MONEY = "money"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much may be used in a window. ``subject`` is whose it is: ``key:7``, or ``all``.

    ``period`` (day, month) tells it from others of the same subject and measure.
    """

    subject: str
    owner: str
    measure: Measure
    period: str
    amount: Decimal
    begins: datetime
    ends: datetime

    @property
    def name(self) -> str:
        """Tell it from all others; the same in each of its windows."""
        return f"{self.subject} {self.measure} {self.period}"

    def read_used(self) -> Decimal:
        """Ask the ledger what is used of it."""
        kind, _, number = self.subject.partition(":")
        subject = Subject(**{f"{kind}_id": int(number)}) if number else EVERYBODY
        used = sum_usage(subject, self.begins)
        return used.cost if self.measure is Measure.MONEY else Decimal(used.num_tokens)


def list_budgets(now: datetime) -> list[Budget]:
    """Give all budgets with their windows of now."""
    found: list[Budget] = import_string(settings.BUDGETS)(now)
    return found
