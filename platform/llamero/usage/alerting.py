"""Notes that a share of a budget is used, once in each of its windows, and has it told."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone

from inference.relay.connect import SyncRedis
from llamero.usage.budget_use import read_used
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
    """Note the shares that are used and have not been noted in this window.

    The number of queries does not grow with that of budgets.
    """
    alerts = list(UsageAlert.objects.filter(enabled=True))
    if not alerts:
        return
    watched = {one.subject for one in alerts}
    budgets = [one for one in list_budgets(now) if not watched.isdisjoint(("", one.subject))]
    used = read_used(budgets)
    noted: list[AlertNotice] = []
    for budget in budgets:
        for alert in alerts:
            if alert.subject in ("", budget.subject):
                noted += _notices_of(alert, budget, used[budget.name])
    if noted:
        _keep_new(noted)


def _notices_of(alert: UsageAlert, budget: Budget, used: Decimal) -> Iterator[AlertNotice]:
    """Give what is to be told of the highest share that is used; lower ones say nothing more."""
    reached = [share for share in alert.shares if used * 100 >= share * budget.amount]
    if not reached:
        return
    for channel, is_meant in ((EMAIL, alert.recipients), (WEBHOOK, alert.webhook_url)):
        if is_meant:
            yield AlertNotice(
                alert=alert,
                budget=budget.name,
                begins_at=budget.begins,
                channel=channel,
                share=max(reached),
                message=_message(alert, budget, used, max(reached)),
            )


def _keep_new(notices: list[AlertNotice]) -> None:
    """Keep those that say more than what was noted before in the same window."""
    alerts = {one.alert_id for one in notices}
    earliest = min(one.begins_at for one in notices)
    told: dict[tuple[object, ...], int] = {}
    before = AlertNotice.objects.filter(alert__in=alerts, begins_at__gte=earliest).order_by()
    for *window, share in before.values_list("alert_id", "channel", "budget", "begins_at", "share"):
        told[tuple(window)] = max(share, told.get(tuple(window), 0))
    AlertNotice.objects.bulk_create(
        (
            one
            for one in notices
            if one.share > told.get((one.alert_id, one.channel, one.budget, one.begins_at), 0)
        ),
        batch_size=500,
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
