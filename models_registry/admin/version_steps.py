"""Which version of a model is served: any ready one, and back to the one before."""

from typing import Any

from django.core.exceptions import ValidationError

from models_registry.admin.confirmed import Step
from models_registry.admin.labels import compare_facts
from models_registry.models import Deployment, Model, ModelVersion, VersionState
from models_registry.services.versions import find_rollback, make_current


def list_version_steps(version: ModelVersion) -> list[Step]:
    """Give what can be done with a version."""
    can_serve = version.state == VersionState.READY and not version.is_current
    return [MAKE_CURRENT] if can_serve else []


def list_model_steps(model: Model) -> list[Step]:
    """Give what can be done with a model."""
    return [ROLL_BACK] if find_rollback(model=model) else []


def _foretell(version: ModelVersion) -> list[str]:
    current = version.model.versions.filter(is_current=True).first()
    lines = [f"{version} will be served{f' instead of v{current.number}' if current else ''}."]
    deployments = Deployment.objects.filter(model=version.model_id)
    if names := _names(deployments.filter(pinned_version=None, enabled=True)):
        lines.append(f"{names} will load it: the old replicas serve until the new ones are ready.")
    if names := _names(deployments.exclude(pinned_version=None)):
        lines.append(f"{names} stays with the version it is pinned to.")
    return lines + compare_facts(current.facts if current else {}, version.facts)


def _names(deployments: Any) -> str:
    return ", ".join(deployments.values_list("slug", flat=True)[:20])


def _make_current(version: ModelVersion) -> str:
    make_current(version=version)
    return f"{version} is served now."


def _rollback_of(model: Model) -> ModelVersion:
    version = find_rollback(model=model)
    if version is None:
        raise ValidationError("No earlier version could be served.")
    return version


def _foretell_rollback(model: Model) -> list[str]:
    return _foretell(_rollback_of(model))


def _roll_back(model: Model) -> str:
    return _make_current(_rollback_of(model))


MAKE_CURRENT = Step("make-current", "Make current", "check_circle", _foretell, _make_current)
ROLL_BACK = Step("roll-back", "Roll back", "undo", _foretell_rollback, _roll_back)
