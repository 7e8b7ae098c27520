"""Usage in the admin: reports, the ledger, prices beside models, alerts."""

from llamero.usage.admin.alert import AlertNoticeAdmin, UsageAlertAdmin
from llamero.usage.admin.ledger import LedgerRowAdmin
from llamero.usage.admin.price import PriceInline
from llamero.usage.admin.report import UsageReportAdmin

__all__ = [
    "AlertNoticeAdmin",
    "LedgerRowAdmin",
    "PriceInline",
    "UsageAlertAdmin",
    "UsageReportAdmin",
]
