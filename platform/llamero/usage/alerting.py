"""Notes that a share of a budget is used, once in each of its windows, and has it told."""

import time
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone

from inference.relay.connect import SyncRedis
from llamero.usage.budgets import Budget, list_budgets
from llamero.usage.models import AlertNotice, UsageAlert
from llamero.usage.money import write_money
from llamero.usage.notifying import EMAIL, WEBHOOK, send_notices

PERIOD_SECONDS = 15.0


class AlertWatch:
    """Looks at budgets now and then; ``watch_alerts`` is a step of the ledger's loop.

    What is to be told is in the database before it is told: several watches tell it once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_at = 0.0

    def watch_alerts(self, redis: SyncRedis) -> None:
        """Look whether something is to be told, and tell what waits."""
        if self._clock() < self._due_at:
            return
        self._due_at = self._clock() + PERIOD_SECONDS
        note_shares(timezone.now())
        send_notices(timezone.now())


def note_shares(now: datetime) -> None:
    """Note the shares that are used and have not been noted in this window."""
    alerts = list(UsageAlert.objects.filter(enabled=True))
    if not alerts:
        return
    for budget in list_budgets(now):
        watching = [one for one in alerts if one.subject in ("", budget.subject)]
        if watching:
            used = budget.read_used()
            for alert in watching:
                _note(alert, budget, used)


def _note(alert: UsageAlert, budget: Budget, used: Decimal) -> None:
    """Note the highest share that is used; lower ones say nothing more."""
    reached = [share for share in alert.shares if used * 100 >= share * budget.amount]
    if not reached:
        return
    window = {"alert": alert, "budget": budget.name, "begins_at": budget.begins}
    channels = [EMAIL] if alert.recipients else []
    channels += [WEBHOOK] if alert.webhook_url else []
    told = AlertNotice.objects.filter(**window, share__gte=max(reached))
    missing = set(channels) - set(told.values_list("channel", flat=True))
    message = _message(alert, budget, used, max(reached))
    AlertNotice.objects.bulk_create(
        (
            AlertNotice(**window, channel=channel, share=max(reached), message=message)
            for channel in sorted(missing)
        ),
        ignore_conflicts=True,
    )


def _message(alert: UsageAlert, budget: Budget, used: Decimal, share: int) -> dict[str, Any]:
    """Say what is told; amounts are texts, as JSON's numbers may be rounded."""
    return {
        "type": "usage.alert",
        "alert": alert.name,
        "share_percent": share,
        "subject": budget.subject,
        "owner": budget.owner,
        "measure": budget.measure,
        "period": budget.period,
        "used": write_money(used),
        "budget": write_money(budget.amount),
        "window_begins": budget.begins.isoformat(),
        "window_ends": budget.ends.isoformat(),
    }
