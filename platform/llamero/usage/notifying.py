"""Tells what alerts noted, by e-mail and webhook: tried again where that fails, and given up once.

A webhook is signed as Standard Webhooks describes. One whose answer is lost is told again, with the
same id.
"""

import json
import logging
import secrets
import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from smtplib import SMTPException
from typing import Any

from django.core.mail import EmailMessage
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from llamero.egress import FetchFailed, UnsafeAddress, post_document
from llamero.usage.models import AlertNotice, NoticeState, UsageAlert
from llamero.usage.signing import sign

logger = logging.getLogger(__name__)
EMAIL, WEBHOOK = "email", "webhook"
MAX_TRIES = 12
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=1)
# Each may take some seconds, and the ledger waits for them.
MAX_SENT = 100
MAX_SECONDS = 5.0
TRIAL = "usage.alert.trial"


class NotSent(Exception):
    """Why somebody could not be told."""


# Addresses that cannot be written as mails need them are a ValueError.
_TROUBLE = (NotSent, FetchFailed, UnsafeAddress, SMTPException, OSError, ValueError)


def send_notices(now: datetime) -> None:
    """Tell what is due.

    Who could not be told something is told nothing more before the next try: a webhook that hangs
    costs its own notices time, and no others.
    """
    due = AlertNotice.objects.filter(
        state=NoticeState.WAITING, next_try_at__lte=now, alert__enabled=True
    )
    began = time.monotonic()
    failed: set[tuple[str, str]] = set()
    for notice in due.select_related("alert").order_by("next_try_at", "pk")[:MAX_SENT]:
        if time.monotonic() - began > MAX_SECONDS:
            return
        if _receiver(notice) in failed or not _claim(notice, now) or _send(notice):
            continue
        failed.add(_receiver(notice))
        _put_off(due, notice)


def _receiver(notice: AlertNotice) -> tuple[str, str]:
    told = notice.alert.webhook_url if notice.channel == WEBHOOK else notice.alert.recipients
    return notice.channel, str(told)


def _put_off(due: "QuerySet[AlertNotice]", failed: AlertNotice) -> None:
    """Have all that is due for the same receiver wait as what failed does; it counts as a try."""
    alert = failed.alert
    same = (
        Q(alert__webhook_url=alert.webhook_url)
        if failed.channel == WEBHOOK
        else Q(alert__recipients=alert.recipients)
    )
    tried = AlertNotice.objects.get(pk=failed.pk)
    # By key, since not every database updates rows by a join.
    keys = list(due.filter(same, channel=failed.channel).values_list("pk", flat=True))
    others = AlertNotice.objects.filter(pk__in=keys, state=NoticeState.WAITING)
    others.update(
        num_tries=F("num_tries") + 1, next_try_at=tried.next_try_at, last_error=tried.last_error
    )
    others.filter(num_tries__gte=MAX_TRIES).update(state=NoticeState.GIVEN_UP)


def try_alert(alert: UsageAlert) -> list[str]:
    """Tell recipients and webhook that this is a trial; give what failed, and why.

    Blocks for some seconds.
    """
    failed: list[str] = []
    tells = {
        "E-mail": (alert.recipients, partial(_try_email, alert)),
        "Webhook": (alert.webhook_url, partial(_try_webhook, alert)),
    }
    for name, (is_meant, tell) in tells.items():
        if is_meant:
            try:
                tell()
            except _TROUBLE as error:
                failed.append(f"{name}: {error}")
    return failed


def _try_email(alert: UsageAlert) -> None:
    lines = (f"This is a trial of the alert “{alert.name}”.", "No budget is concerned.")
    _write(alert, f"A trial of the alert {alert.name}", lines)


def _try_webhook(alert: UsageAlert) -> None:
    _post(alert, f"trial_{secrets.token_hex(8)}", {"type": TRIAL, "alert": alert.name})


def _claim(notice: AlertNotice, now: datetime) -> bool:
    """Take a try for oneself: another watch may have taken it."""
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**notice.num_tries)
    same = AlertNotice.objects.filter(
        pk=notice.pk, state=NoticeState.WAITING, num_tries=notice.num_tries
    )
    return same.update(num_tries=F("num_tries") + 1, next_try_at=now + pause) == 1


def _send(notice: AlertNotice) -> bool:
    """Tell it, and note what came of it; False where nobody could be told."""
    changes: dict[str, object] = {"state": NoticeState.SENT, "last_error": ""}
    try:
        if notice.channel == EMAIL:
            _send_email(notice)
        else:
            _call_webhook(notice)
    except _TROUBLE as error:
        logger.warning("alert %s could not tell by %s: %s", notice.alert_id, notice.channel, error)
        is_last = notice.num_tries + 1 >= MAX_TRIES
        state = NoticeState.GIVEN_UP if is_last else NoticeState.WAITING
        changes = {"state": state, "last_error": str(error)[:200]}
    AlertNotice.objects.filter(pk=notice.pk).update(**changes)
    return changes["state"] == NoticeState.SENT


def _send_email(notice: AlertNotice) -> None:
    told = notice.message
    has_refused = told.get("has_refused", False)
    share = f"{told['share_percent']} % of a budget is used"
    what = "Too little is left of a budget" if has_refused else share
    subject = f"{what}: {told['owner']}"
    lines = (
        f"{told['used']} of {told['budget']} {told['measure']} are used,",
        f"which {told['owner']} may use in a {told['period']}.",
        *(("A request was refused, for which too little is left.",) if has_refused else ()),
        f"The budget begins anew at {told['window_ends']}.",
        f"This is the alert “{told['alert']}”.",
    )
    _write(notice.alert, subject, lines)


def _write(alert: UsageAlert, subject: str, lines: Iterable[str]) -> None:
    if alert.hindrance:
        raise NotSent(alert.hindrance)
    # Names may have several lines.
    subject = " ".join(subject.split())
    EmailMessage(subject, "\n".join(lines) + "\n", to=alert.recipients).send()


def _call_webhook(notice: AlertNotice) -> None:
    _post(notice.alert, f"alert_{notice.pk}", notice.message)


def _post(alert: UsageAlert, message_id: str, message: dict[str, Any]) -> None:
    seconds = int(timezone.now().timestamp())
    body = json.dumps(message).encode()
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": sign(alert.webhook_secret, message_id, seconds, body),
    }
    post_document(alert.webhook_url, body, headers)
