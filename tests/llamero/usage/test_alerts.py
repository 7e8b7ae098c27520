"""Somebody is told that a share of a budget is used: once in each window."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.exceptions import ValidationError
from django.utils import timezone

from llamero.egress import FetchFailed
from llamero.limits.models import LimitSet
from llamero.usage import alerting, notifying
from llamero.usage.alerting import AlertWatch, note_shares
from llamero.usage.models import AlertNotice, NoticeState, UsageAlert
from llamero.usage.notifying import MAX_TRIES, send_notices
from tests.llamero.usage.rows import NOON, make_row, save_rows

pytestmark = pytest.mark.django_db
LATER = NOON + timedelta(hours=1)


@pytest.fixture(autouse=True)
def _mail_is_set_up(settings: Any) -> None:
    settings.EMAIL_IS_SET_UP = True


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes, dict[str, str]]]:
    """What webhooks are told."""
    calls: list[tuple[str, bytes, dict[str, str]]] = []
    monkeypatch.setattr(notifying, "post_document", lambda *call: calls.append(call))
    return calls


def make_alert(**changes: Any) -> UsageAlert:
    fields: dict[str, Any] = {
        "name": "spending",
        "shares": [50, 100],
        "recipients": ["a@b.example"],
    }
    return UsageAlert.objects.create(**(fields | changes))


def use(num_tokens: int, **changes: Any) -> None:
    save_rows(make_row(num_prompt_tokens=num_tokens, num_completion_tokens=0, **changes))


def notices() -> list[tuple[str, int]]:
    return list(AlertNotice.objects.order_by("pk").values_list("channel", "share"))


def test_each_share_is_told_once_in_a_window():
    LimitSet.objects.create(tokens_per_day=1000)
    make_alert()
    use(499)
    note_shares(LATER)
    assert notices() == []
    use(1)
    for _ in range(3):
        note_shares(LATER)
    assert notices() == [("email", 50)]
    use(600)
    note_shares(LATER)
    assert notices() == [("email", 50), ("email", 100)]
    note_shares(LATER + timedelta(days=1))
    use(500, ended_at=NOON + timedelta(days=1))
    note_shares(LATER + timedelta(days=1))
    assert notices() == [("email", 50), ("email", 100), ("email", 50)]


def test_a_budget_of_another_amount_is_another():
    limits = LimitSet.objects.create(tokens_per_day=1000)
    make_alert()
    use(1000)
    note_shares(LATER)
    for amount in (1500, 4000, 1500):
        limits.tokens_per_day = amount
        limits.save()
        for _ in range(2):
            note_shares(LATER)
    assert notices() == [("email", 100), ("email", 50)]
    use(3000)
    limits.tokens_per_day = 4000
    limits.save()
    note_shares(LATER)
    assert notices()[2:] == [("email", 100)]


def test_all_is_used_where_a_request_did_not_fit_in_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    LimitSet.objects.create(tokens_per_day=1000)
    make_alert(shares=[90, 100, 110])
    use(899)
    refused = {"spent:all:day:UTC"}
    monkeypatch.setattr(alerting, "read_refused", lambda _, found: refused & set(found))
    for _ in range(2):
        note_shares(LATER, redis=object())  # type: ignore[arg-type]
    assert notices() == [("email", 100)]
    assert AlertNotice.objects.get().message["used"] == "899"
    send_notices(timezone.now())
    [message] = mail.outbox
    assert message.subject == "Too little is left of a budget: all together"
    assert "A request was refused" in message.body


def test_lower_shares_are_not_told_behind_a_higher_one():
    LimitSet.objects.create(tokens_per_day=1000)
    make_alert()
    use(2000)
    note_shares(LATER)
    note_shares(LATER)
    assert notices() == [("email", 100)]


def test_money_and_months_in_a_time_zone_are_budgets_too():
    LimitSet.objects.create(money_per_month=Decimal("0.0002"), time_zone="Pacific/Auckland")
    make_alert(shares=[100])
    use(1, cost=Decimal("0.0001999999"), currency="EUR")
    note_shares(LATER)
    assert notices() == []
    use(1, cost=Decimal("0.0000000001"), currency="EUR")
    note_shares(LATER)
    notice = AlertNotice.objects.get()
    assert notice.begins_at == datetime(2026, 2, 28, 11, tzinfo=UTC)
    assert (notice.message["used"], notice.message["budget"]) == ("0.0002", "0.0002")


def test_an_alert_of_one_watches_its_budgets_alone(admin_user: Any):
    LimitSet.objects.create(user=admin_user, tokens_per_day=100)
    LimitSet.objects.create(tokens_per_day=100)
    make_alert(user=admin_user)
    use(100)
    note_shares(LATER)
    assert notices() == []
    use(100, user_id=admin_user.pk)
    note_shares(LATER)
    assert AlertNotice.objects.get().message["owner"] == "user admin"


def test_many_budgets_need_no_more_queries_than_a_few(admin_user, django_assert_max_num_queries):
    users = User.objects.bulk_create(User(username=f"user{number}") for number in range(600))
    zones = ("UTC", "Asia/Kathmandu", "America/New_York")
    LimitSet.objects.bulk_create(
        LimitSet(user=user, tokens_per_day=100, money_per_month=1, time_zone=zones[user.pk % 3])
        for user in users
    )
    LimitSet.objects.create(tokens_per_day=10**6)
    make_alert()
    rows = [make_row(user_id=user.pk, num_prompt_tokens=user.pk % 7 * 20) for user in users]
    # Midnight of Kathmandu is a quarter past an hour of the world.
    early = NOON - timedelta(hours=17, minutes=46)
    rows += [make_row(user_id=user.pk, ended_at=early) for user in users]
    save_rows(*rows)
    with django_assert_max_num_queries(12):
        note_shares(LATER)
    shares = {notice.budget: notice.share for notice in AlertNotice.objects.all()}
    for user in users:
        used = user.pk % 7 * 20 + 5
        share = 100 if used >= 100 else 50 if used >= 50 else None
        assert shares.get(f"user:{user.pk} tokens day 100") == share


def test_recipients_are_written_to_once():
    LimitSet.objects.create(tokens_per_day=10)
    make_alert(name="a\nb", recipients=["a@b.example", "c@d.example"])
    use(10)
    note_shares(LATER)
    now = timezone.now()
    send_notices(now)
    send_notices(now + timedelta(days=1))
    [message] = mail.outbox
    assert message.to == ["a@b.example", "c@d.example"]
    assert message.subject == "100 % of a budget is used: all together"
    assert AlertNotice.objects.get().state == NoticeState.SENT


def test_a_webhook_is_told_signed(told):
    LimitSet.objects.create(tokens_per_day=10)
    alert = make_alert(recipients=[], webhook_url="https://hooks.example/x")
    use(10)
    note_shares(LATER)
    send_notices(timezone.now())
    [(url, body, headers)] = told
    assert url == "https://hooks.example/x"
    assert json.loads(body)["share_percent"] == 100
    key = base64.b64decode(alert.webhook_secret.removeprefix("whsec_"))
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_a_webhook_that_fails_is_told_again_later_and_given_up_at_last(told, monkeypatch):
    def fail(*_: Any) -> None:
        raise FetchFailed("hooks.example answered 500")

    LimitSet.objects.create(tokens_per_day=10)
    make_alert(recipients=[], webhook_url="https://hooks.example/x")
    use(10)
    note_shares(LATER)
    now = timezone.now()
    with monkeypatch.context() as patch:
        patch.setattr(notifying, "post_document", fail)
        send_notices(now)
        send_notices(now + timedelta(seconds=1))
        assert AlertNotice.objects.get().num_tries == 1
    assert told == []
    send_notices(now + timedelta(seconds=31))
    assert len(told) == 1
    AlertNotice.objects.update(state=NoticeState.WAITING, num_tries=MAX_TRIES - 1)
    monkeypatch.setattr(notifying, "post_document", fail)
    send_notices(now + timedelta(days=9))
    notice = AlertNotice.objects.get()
    assert (notice.state, notice.last_error) == ("given_up", "hooks.example answered 500")


def test_two_watches_tell_it_once(told):
    LimitSet.objects.create(tokens_per_day=10)
    make_alert(recipients=[], webhook_url="https://hooks.example/x")
    use(10)
    note_shares(LATER)
    notice = AlertNotice.objects.get()
    assert notifying._claim(notice, LATER)
    assert not notifying._claim(notice, LATER)


def test_without_a_mail_server_the_reason_is_kept(settings):
    settings.EMAIL_IS_SET_UP = False
    LimitSet.objects.create(tokens_per_day=10)
    make_alert()
    use(10)
    note_shares(LATER)
    send_notices(timezone.now())
    assert "LLAMERO_EMAIL_URL" in AlertNotice.objects.get().last_error


def test_a_watch_looks_now_and_then(django_assert_num_queries):
    seconds = [100.0]
    watch = AlertWatch(lambda: seconds[0])
    watch.watch_alerts(None)
    with django_assert_num_queries(0):
        watch.watch_alerts(None)
    seconds[0] += 20
    with django_assert_num_queries(2):
        watch.watch_alerts(None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shares", []),
        ("shares", [0]),
        ("shares", [80, 80]),
        ("shares", [True]),
        ("shares", ["80"]),
        ("shares", list(range(1, 12))),
        ("recipients", ["nobody"]),
        ("recipients", ["a@b.example\nBcc: c@d.example"]),
        ("recipients", [f"a{number}@b.example" for number in range(21)]),
        ("webhook_url", "http://hooks.example/"),
        ("webhook_url", "https://127.0.0.1/"),
        ("webhook_url", "https://[::ffff:169.254.169.254]/"),
        ("webhook_url", "https://user@hooks.example/"),
        ("webhook_url", "file:///etc/passwd"),
    ],
)
def test_what_makes_no_alert_is_refused(field, value):
    fields = {"name": "x", "shares": [80], "recipients": ["a@b.example"], field: value}
    with pytest.raises(ValidationError) as caught:
        UsageAlert(**fields).full_clean()
    assert field in caught.value.message_dict


def test_an_alert_that_tells_nobody_is_refused():
    with pytest.raises(ValidationError):
        UsageAlert(name="x", shares=[80]).full_clean()


def make_notices(alert: UsageAlert, count: int) -> None:
    AlertNotice.objects.bulk_create(
        AlertNotice(
            alert=alert,
            channel="webhook",
            budget=f"key:{number} tokens day 7",
            begins_at=NOON,
            share=100,
            message={},
            next_try_at=NOON,
        )
        for number in range(count)
    )


def test_a_webhook_that_hangs_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = make_alert(recipients=[], webhook_url="https://dead.example/")
    other = make_alert(recipients=[], webhook_url="https://dead.example/", name="same")
    fine = make_alert(recipients=[], webhook_url="https://fine.example/")
    for alert in (dead, other, fine):
        make_notices(alert, 40)
    seconds, called = [0.0], []

    def post(url: str, *_: Any) -> None:
        called.append(url)
        if "dead" in url:
            seconds[0] += 4.0
            raise FetchFailed("dead.example could not be asked: TimeoutError")

    monkeypatch.setattr(notifying, "post_document", post)
    monkeypatch.setattr(notifying, "time", SimpleNamespace(monotonic=lambda: seconds[0]))

    send_notices(LATER)
    send_notices(LATER)

    assert called.count("https://dead.example/") == 1
    assert AlertNotice.objects.filter(alert=fine, state=NoticeState.SENT).count() == 40
    late = AlertNotice.objects.exclude(alert=fine)
    assert {one.num_tries for one in late} == {1}
    assert len({one.next_try_at for one in late}) == 1
    assert {one.last_error for one in late} == {"dead.example could not be asked: TimeoutError"}

    late.update(num_tries=MAX_TRIES - 1)
    send_notices(LATER + timedelta(hours=1))
    assert {one.state for one in late.all()} == {NoticeState.GIVEN_UP}
