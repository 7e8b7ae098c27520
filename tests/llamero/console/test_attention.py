"""What needs attention is named, with where to go, to those who may see it."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from llamero.accounts.services import issue_api_key
from llamero.console import attention
from llamero.console.attention import list_concerns
from llamero.console.overview import NodeRow, Overview
from llamero.control.models import Node
from llamero.usage.models import AlertNotice, NoticeState, UsageAlert
from models_registry.models import DeploymentState, VersionState
from tests.models_registry.factories import make_deployment, make_model, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> User:
    return User.objects.create_superuser("ada", password="x")


def titles(user: Any, **overview: Any) -> list[str]:
    """List what a user is told."""
    return [one.title for one in list_concerns(user, Overview(**overview))]


def test_nothing_is_said_where_nothing_is_wrong(admin: User) -> None:
    model = make_model()
    make_version(model)
    make_deployment(model, state=DeploymentState.READY)
    make_deployment(model, "new", state=DeploymentState.PENDING)

    assert titles(admin) == []


def test_each_trouble_is_named_the_worst_first(admin: User, monkeypatch: Any) -> None:
    model = make_model()
    make_version(model, state=VersionState.REJECTED, is_current=False, reason="Not a GGUF.")
    lost = make_version(model, number=2, state=VersionState.QUARANTINED, reason="Changed.")
    make_deployment(model, state=DeploymentState.FAILED, reason="No room.")
    before = timezone.now() - timedelta(hours=1)
    make_deployment(model, "stuck", state=DeploymentState.PENDING, state_changed_at=before)
    make_deployment(model, "off", state=DeploymentState.FAILED, enabled=False)
    Node.objects.create(name="gone")
    soon = timezone.now() + timedelta(days=3)
    issue_api_key(user=admin, name="short", expires_at=soon)
    disk = SimpleNamespace(total=100 << 30, free=1 << 30)
    monkeypatch.setattr(attention.shutil, "disk_usage", lambda path: disk)

    concerns = list_concerns(admin, Overview())

    assert [one.title for one in concerns] == [
        "tiny has failed",
        "1.0\xa0GiB of disk space left",
        f"{lost} is no longer what was examined",
        "stuck waits",
        "tiny v1 was rejected",
        "Node gone is silent",
        "A key will expire",
    ]
    assert all(one.url.startswith("/admin/") and one.advice for one in concerns)
    assert concerns[0].advice == "No room."


def test_what_one_may_not_see_is_not_told() -> None:
    Node.objects.create(name="gone")
    make_deployment(make_model(), state=DeploymentState.FAILED)
    member = User.objects.create_user("bob", is_staff=True)

    assert titles(member) == []


def test_budgets_that_are_used_are_named(admin: User, settings: Any) -> None:
    settings.EMAIL_IS_SET_UP = True
    alert = UsageAlert.objects.create(name="Spending", recipients=["ops@example.org"])
    AlertNotice.objects.create(
        alert=alert,
        channel="mail",
        budget="key:1 tokens day",
        begins_at=timezone.now(),
        share=100,
        message={"owner": "key ci (llm_abcdefgh_…)", "measure": "tokens", "period": "day"},
    )

    budget = "key ci (llm_abcdefgh_…), tokens a day"
    assert titles(admin) == [f"Spending: 100 % of {budget} is used"]


def test_alerts_that_no_mail_server_sends_are_named(admin: User, settings: Any) -> None:
    UsageAlert.objects.create(name="Spending", recipients=["ops@example.org"])
    UsageAlert.objects.create(name="Hook", webhook_url="https://hooks.example/x")
    UsageAlert.objects.create(name="Off", recipients=["ops@example.org"], enabled=False)
    settings.EMAIL_IS_SET_UP = False
    [concern] = list_concerns(admin, Overview())
    assert concern.title == "Alerts cannot be sent by e-mail"
    assert "LLAMERO_EMAIL_URL" in concern.advice
    assert "recipients of Spending are" in concern.advice
    settings.EMAIL_IS_SET_UP = True
    assert list_concerns(admin, Overview()) == []


def test_a_drain_that_nothing_can_stand_in_for_is_named(admin: User) -> None:
    model = make_model()
    make_deployment(model, "waits", state=DeploymentState.READY, reason="Is to move.")
    make_deployment(model, "goes", state=DeploymentState.READY)
    for name in ("full", "other"):
        Node.objects.create(name=name)
    full = NodeRow("full", "", {}, (), ("goes", "waits"), "Draining")
    other = NodeRow("other", "", {}, ())

    [concern] = list_concerns(admin, Overview(nodes=[full, other]))
    assert concern.title == "Node full still runs waits"
    assert concern.advice.startswith("Is to move. ")
    [concern] = list_concerns(admin, Overview(nodes=[full, replace(other, limit="Cordoned")]))
    assert concern.advice.startswith("No node is open for waits: ")


def test_nodes_are_not_called_silent_while_nobody_hears_them(admin: User) -> None:
    Node.objects.create(name="n")

    assert titles(admin, is_live=False) == []


def test_a_budget_is_named_once_however_many_were_told(admin: User, settings: Any) -> None:
    settings.EMAIL_IS_SET_UP = True
    alert = UsageAlert.objects.create(name="Spending", recipients=["ops@example.org"])
    now = timezone.now()
    for channel, share, state in (
        ("email", 80, NoticeState.SENT),
        ("email", 100, NoticeState.SENT),
        ("webhook", 100, NoticeState.GIVEN_UP),
    ):
        AlertNotice.objects.create(
            alert=alert,
            channel=channel,
            state=state,
            budget="all tokens day 7",
            begins_at=now,
            share=share,
            message={"owner": "all", "measure": "tokens", "period": "day"},
        )

    [concern] = list_concerns(admin, Overview())

    assert concern.title == "Spending: 100 % of all, tokens a day is used"
    assert concern.advice == "Raise the budget, or wait."
