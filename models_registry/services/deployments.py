"""Create, change, restart and judge deployments."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from inference.protocol.replicas import ModelKind, RuntimeProfile
from models_registry.memory import estimate_replica
from models_registry.models import Deployment, DeploymentState, Model, ModelVersion
from models_registry.names import deployment_name_for

DEFAULT_CONTEXT = 8192
DEFAULT_SLOTS = 16
# Slots are halved until their caches fit into this much.
DEFAULT_CACHE_BYTES = 8 * 1024**3


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


def default_profile(model: Model, version: ModelVersion | None) -> dict[str, Any]:
    """Choose context and slots for a model of which only the header is known."""
    facts = version.facts if version else {}
    trained = facts.get("context_length") or DEFAULT_CONTEXT
    is_generative = ModelKind(model.kind).is_generative
    values: dict[str, Any] = {
        "context_length": min(trained, DEFAULT_CONTEXT) if is_generative else trained,
        "num_slots": DEFAULT_SLOTS,
    }
    while values["num_slots"] > 1 and _cache_bytes(model, facts, values) > DEFAULT_CACHE_BYTES:
        values["num_slots"] //= 2
    return values


def _cache_bytes(model: Model, facts: dict[str, Any], values: dict[str, Any]) -> int:
    profile = RuntimeProfile(**values)
    estimate = estimate_replica(kind=ModelKind(model.kind), profile=profile, facts=facts)
    return estimate.host.cache_bytes if estimate else 0


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
