"""What the person who runs this site should look at: each thing with where to go and what to do."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.db.models import Model, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timeuntil

from llamero.accounts.models import ApiKey
from llamero.console.overview import Overview
from llamero.control.models import Node
from llamero.usage.models import AlertNotice, NoticeState, UsageAlert
from models_registry.models import Deployment, DeploymentState, ModelVersion, VersionState
from models_registry.sizes import filesizeformat

MAX_NAMED = 5
EXPIRY = timedelta(days=14)
LATELY = timedelta(days=7)
STUCK = timedelta(minutes=2)
LOW_DISK_SHARE = 0.1
LOW_DISK_BYTES = 5 * 2**30


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing: ``level`` is danger or warning; ``advice`` says what to do next."""

    level: str
    title: str
    advice: str
    url: str = ""


Row = TypeVar("Row", bound=Model)
Person = AbstractBaseUser | PermissionsMixin | AnonymousUser


def list_concerns(user: Person, overview: Overview) -> list[Concern]:
    """List what is wrong and may be seen by a user, the worst first."""
    found: list[Concern] = []
    if _may(user, "models_registry.view_deployment"):
        found += _judge_deployments()
        found += _judge_disk()
    if _may(user, "models_registry.view_modelversion"):
        found += _judge_versions()
    if overview.is_live and _may(user, "control.view_node"):
        found += _judge_nodes(overview)
        found += _judge_drains(overview)
    if _may(user, "accounts.view_apikey"):
        found += _judge_keys()
    if _may(user, "usage.view_alertnotice"):
        found += _judge_budgets()
    if _may(user, "usage.view_usagealert"):
        found += _judge_alerts()
    return sorted(found, key=lambda one: one.level != "danger")


def _may(user: Person, permission: str) -> bool:
    return bool(getattr(user, "has_perm", lambda _: False)(permission))


def _judge_deployments() -> Iterator[Concern]:
    is_stuck = Q(state=DeploymentState.PENDING, state_changed_at__lt=timezone.now() - STUCK)
    is_bad = Q(enabled=True) & (Q(state=DeploymentState.FAILED) | is_stuck)
    for one in _first(Deployment.objects.filter(is_bad).order_by("slug")):
        has_failed = one.state == DeploymentState.FAILED
        yield Concern(
            "danger" if has_failed else "warning",
            f"{one.slug} {'has failed' if has_failed else 'waits'}",
            one.reason[:300] or "Open it to see what is in its way.",
            reverse("admin:models_registry_deployment_change", args=[one.pk]),
        )


def _judge_disk() -> Iterator[Concern]:
    """Look at the disk that holds models and, with SQLite, the database."""
    try:
        disk = shutil.disk_usage(settings.HOME)
    except OSError:
        return
    if disk.free < min(LOW_DISK_SHARE * disk.total, LOW_DISK_BYTES):
        yield Concern(
            "danger",
            f"{filesizeformat(disk.free)} of disk space left",
            "Delete versions or models that nobody uses: files go with their last version.",
            reverse("admin:models_registry_modelversion_changelist") + "?is_current__exact=0",
        )


def _judge_versions() -> Iterator[Concern]:
    is_late = Q(state=VersionState.REJECTED, updated_at__gte=timezone.now() - LATELY)
    is_bad = Q(state=VersionState.QUARANTINED) | is_late
    for one in _first(ModelVersion.objects.filter(is_bad).select_related("model")):
        is_lost = one.state == VersionState.QUARANTINED
        yield Concern(
            "danger" if is_lost else "warning",
            f"{one} {'is no longer what was examined' if is_lost else 'was rejected'}",
            one.reason[:300],
            reverse("admin:models_registry_modelversion_change", args=[one.pk]),
        )


def _judge_nodes(overview: Overview) -> Iterator[Concern]:
    heard = {node.name for node in overview.nodes}
    for node in _first(Node.objects.exclude(name__in=heard).order_by("name")):
        yield Concern(
            "warning",
            f"Node {node.name} is silent",
            "Start its agent again, or delete the node if it is gone for good.",
            reverse("admin:control_node_change", args=[node.pk]),
        )


def _judge_drains(overview: Overview) -> Iterator[Concern]:
    """Name nodes that do not get empty: nothing can stand in for what runs there."""
    is_any_open = any(not node.limit for node in overview.nodes)
    for node in [one for one in overview.nodes if one.is_draining][:MAX_NAMED]:
        here = Deployment.objects.filter(slug__in=node.deployments, enabled=True)
        waiting = _first(here.exclude(reason="").order_by("slug"))
        if not waiting:
            continue
        names = ", ".join(one.slug for one in waiting)
        advice = f"{waiting[0].reason[:300]} Open a node with room for it."
        if not is_any_open:
            advice = f"No node is open for {names}: open one, or unload what may stop."
        url = reverse("admin:control_node_changelist") + f"?q={node.name}"
        yield Concern("warning", f"Node {node.name} still runs {names}", advice, url)


def _judge_keys() -> Iterator[Concern]:
    now = timezone.now()
    soon = ApiKey.objects.filter(revoked_at=None, expires_at__gt=now, expires_at__lt=now + EXPIRY)
    keys = _first(soon.order_by("expires_at"))
    if not keys:
        return
    ends = [(key.name, key.expires_at or now) for key in keys]
    names = ", ".join(f"{name} in {timeuntil(end, depth=1)}" for name, end in ends)
    url = reverse("admin:accounts_apikey_changelist")
    if len(keys) == 1:
        url = reverse("admin:accounts_apikey_change", args=[keys[0].pk])
    yield Concern(
        "warning",
        "Keys will expire" if len(keys) > 1 else "A key will expire",
        f"{names}. Give them more time, or tell their owners.",
        url,
    )


def _judge_budgets() -> Iterator[Concern]:
    """Tell what alerts have told of late, and which could not be delivered."""
    notices = AlertNotice.objects.filter(created_at__gte=timezone.now() - timedelta(days=1))
    latest = notices.select_related("alert").order_by("-share", "-pk")[: 4 * MAX_NAMED]
    # One by each way in which it is told; the highest share says all.
    same: dict[tuple[object, ...], list[AlertNotice]] = {}
    for one in latest:
        same.setdefault((one.alert_id, one.budget, one.begins_at), []).append(one)
    for first, *others in list(same.values())[:MAX_NAMED]:
        ways = [first, *(one for one in others if one.share == first.share)]
        is_lost = all(one.state == NoticeState.GIVEN_UP for one in ways)
        yield Concern(
            "danger" if first.share >= 100 else "warning",
            f"{first.alert}: {first.share} % of {first.budget_label} is used",
            f"Nobody was told: {first.last_error}" if is_lost else "Raise the budget, or wait.",
            reverse("admin:usage_alertnotice_changelist"),
        )


def _judge_alerts() -> Iterator[Concern]:
    alerts = UsageAlert.objects.filter(enabled=True).exclude(recipients=[])
    hindered = [one for one in _first(alerts) if one.hindrance]
    if hindered:
        names = ", ".join(one.name for one in hindered)
        yield Concern(
            "warning",
            "Alerts cannot be sent by e-mail",
            f"{hindered[0].hindrance} Until then the recipients of {names} are told nothing.",
            reverse("admin:usage_usagealert_changelist"),
        )


def _first(rows: "QuerySet[Row]") -> "list[Row]":
    """Take as many as are named one by one."""
    return list(rows[:MAX_NAMED])
