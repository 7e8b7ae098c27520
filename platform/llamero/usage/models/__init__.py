"""Prices, the ledger with its sums, kept texts, and alerts."""

from llamero.usage.models.alert import AlertNotice, NoticeState, UsageAlert
from llamero.usage.models.hour import UsageHour
from llamero.usage.models.job_text import JobText
from llamero.usage.models.ledger import LedgerRow, LedgerWriter
from llamero.usage.models.price import ModelPrice

__all__ = [
    "AlertNotice",
    "JobText",
    "LedgerRow",
    "LedgerWriter",
    "ModelPrice",
    "NoticeState",
    "UsageAlert",
    "UsageHour",
]
