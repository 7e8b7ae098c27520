"""Notes that a share of a budget is used, once in each of its windows, and has it told."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone

from inference.relay.connect import SyncRedis
from inference.relay.limits import read_refused
from llamero.usage.budget_use import read_used
from llamero.usage.budgets import Budget, list_budgets
from llamero.usage.models import AlertNotice, UsageAlert
from llamero.usage.money import write_money
from llamero.usage.notifying import EMAIL, WEBHOOK, send_notices

PERIOD_SECONDS = 15.0
ALL = 100


@dataclass(frozen=True, slots=True)
class _State:
    """What is used of a budget, and whether a request was refused for which too little is left."""

    used: Decimal
    has_refused: bool

    def has_reached(self, share: int, amount: Decimal) -> bool:
        """Whether a share is used: all of it, where a request did not fit in what is left."""
        is_all = share == ALL and self.has_refused
        return is_all or self.used * 100 >= share * amount


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
        note_shares(timezone.now(), redis)
        send_notices(timezone.now())


def note_shares(now: datetime, redis: SyncRedis | None = None) -> None:
    """Note the shares that are used and have not been noted in this window.

    With ``redis`` also where a request was refused. The number of queries does not grow with that
    of budgets.
    """
    alerts = list(UsageAlert.objects.filter(enabled=True))
    if not alerts:
        return
    watched = {one.subject for one in alerts}
    budgets = [one for one in list_budgets(now) if not watched.isdisjoint(("", one.subject))]
    used = read_used(budgets)
    refused = set() if redis is None else _read_refused(redis, budgets)
    noted: list[AlertNotice] = []
    for budget in budgets:
        state = _State(used[budget.name], budget.counter in refused)
        for alert in alerts:
            if alert.subject in ("", budget.subject):
                noted += _notices_of(alert, budget, state)
    if noted:
        _keep_new(noted)


def _read_refused(redis: SyncRedis, budgets: Iterable[Budget]) -> set[str]:
    now = {one.counter: (int(one.begins.timestamp()), one.revision) for one in budgets}
    return read_refused(redis, now)


def _notices_of(alert: UsageAlert, budget: Budget, state: _State) -> Iterator[AlertNotice]:
    """Give what is to be told of the highest share that is used; lower ones say nothing more."""
    reached = [share for share in alert.shares if state.has_reached(share, budget.amount)]
    if not reached:
        return
    for channel, is_meant in ((EMAIL, alert.recipients), (WEBHOOK, alert.webhook_url)):
        if is_meant:
            yield AlertNotice(
                alert=alert,
                budget=_name_in_notices(budget),
                begins_at=budget.begins,
                channel=channel,
                share=max(reached),
                message=_message(alert, budget, state, max(reached)),
            )


def _name_in_notices(budget: Budget) -> str:
    """Name a budget so that one whose amount was changed is another."""
    return f"{budget.name} {write_money(budget.amount)}"


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


def _message(alert: UsageAlert, budget: Budget, state: _State, share: int) -> dict[str, Any]:
    """Say what is told; amounts are texts, as JSON's numbers may be rounded."""
    return {
        "type": "usage.alert",
        "alert": alert.name,
        "share_percent": share,
        "subject": budget.subject,
        "owner": budget.owner,
        "measure": budget.measure,
        "period": budget.period,
        "used": write_money(state.used),
        "budget": write_money(budget.amount),
        "has_refused": state.has_refused,
        "window_begins": budget.begins.isoformat(),
        "window_ends": budget.ends.isoformat(),
    }
