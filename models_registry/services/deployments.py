"""Create, change, restart and judge deployments."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from models_registry.models import Deployment, DeploymentState, Model
from models_registry.names import deployment_name_for
from models_registry.services.defaults import default_profile


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


def set_deployment_state(*, slug: str, state: str, reason: str = "") -> bool:
    """Record what control found; tell whether that is news. A vanished deployment is no error."""
    if state not in DeploymentState.values:
        raise ValidationError(f"Unknown deployment state {state}.")
    known = Deployment.objects.filter(slug=slug)
    changed = known.exclude(state=state, reason=reason).update(
        state=state, reason=reason, state_changed_at=timezone.now()
    )
    return changed > 0


def restart_deployments(*, deployments: QuerySet[Deployment]) -> int:
    """Have every replica replaced by a fresh one; give the number of deployments."""
    return deployments.update(generation=F("generation") + 1, updated_at=timezone.now())


def enable_deployments(*, deployments: QuerySet[Deployment], is_enabled: bool) -> int:
    """Start or stop deployments; give the number of those that it changes."""
    changed = deployments.exclude(enabled=is_enabled)
    return changed.update(enabled=is_enabled, updated_at=timezone.now())
