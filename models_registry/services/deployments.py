"""Create, restart, switch and drain deployments, and keep what ended them badly."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from models_registry.models import Deployment, Model
from models_registry.names import deployment_name_for
from models_registry.services.defaults import default_profile
from models_registry.watching import noted


def create_deployment(*, model: Model, slug: str = "", **fields: Any) -> Deployment:
    """Create a deployment; what ``fields`` leave out follows from the current version's header.

    Raises ValidationError for a name in use or a bad value.
    """
    version = model.versions.filter(is_current=True).first()
    values = default_profile(model, version) | fields
    deployment = Deployment(model=model, slug=slug or deployment_name_for(model.slug), **values)
    with transaction.atomic():
        deployment.full_clean()
        deployment.save()
    return deployment


def restart_deployments(*, deployments: QuerySet[Deployment]) -> int:
    """Have every replica replaced by a fresh one; give the number of deployments."""
    with noted(deployments):
        return deployments.update(generation=F("generation") + 1, updated_at=timezone.now())


def enable_deployments(*, deployments: QuerySet[Deployment], is_enabled: bool) -> int:
    """Start or stop deployments; give the number of those that it changes. It ends a drain."""
    changed = deployments.exclude(enabled=is_enabled, is_draining=False)
    with noted(changed):
        return changed.update(enabled=is_enabled, is_draining=False, updated_at=timezone.now())


def drain_deployments(*, deployments: QuerySet[Deployment]) -> int:
    """Have deployments answer what they have, take nothing new, and stop; give their number."""
    changed = deployments.filter(enabled=True, is_draining=False)
    with noted(changed):
        return changed.update(is_draining=True, updated_at=timezone.now())


def finish_draining(*, slug: str) -> bool:
    """Stop a deployment that was drained, unless somebody has thought better of it."""
    changed = Deployment.objects.filter(slug=slug, is_draining=True)
    now = timezone.now()
    with noted(changed):
        return changed.update(enabled=False, is_draining=False, updated_at=now) > 0


def note_deployment_error(*, slug: str, reason: str, log: str, at: datetime) -> None:
    """Keep how a replica ended badly, unless a later end is known."""
    is_news = Q(last_error_at=None) | Q(last_error_at__lt=at)
    Deployment.objects.filter(is_news, slug=slug).update(
        last_error=reason, last_error_log=log, last_error_at=at
    )
