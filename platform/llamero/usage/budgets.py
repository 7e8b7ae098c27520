"""Budgets as alerts see them; whoever sets budgets lists them: ``settings.BUDGETS``."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from django.conf import settings
from django.utils.module_loading import import_string


class Measure(StrEnum):
    """What a budget is of."""

    TOKENS = "tokens"
    MONEY = "money"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much may be used in a window. ``subject`` is whose it is: ``key:7``, or ``all``.

    ``period`` (day, month) tells it from others of the same subject and measure. The broker knows
    it as ``counter``, and its changes by ``revision``.
    """

    subject: str
    owner: str
    measure: Measure
    period: str
    amount: Decimal
    begins: datetime
    ends: datetime
    counter: str
    revision: int

    @property
    def name(self) -> str:
        """Tell it from all others; the same in each of its windows."""
        return f"{self.subject} {self.measure} {self.period}"


def list_budgets(now: datetime) -> list[Budget]:
    """Give all budgets with their windows of now."""
    found: list[Budget] = import_string(settings.BUDGETS)(now)
    return found
