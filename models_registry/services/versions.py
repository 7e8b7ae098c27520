"""Move versions through their states, and choose which one is current."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from models_registry.models import Deployment, Model, ModelVersion, VersionState
from models_registry.watching import noted

_FROM = {
    VersionState.INSPECTING: (VersionState.IMPORTING,),
    VersionState.PROBING: (VersionState.INSPECTING,),
    VersionState.READY: (VersionState.PROBING, VersionState.QUARANTINED),
    VersionState.REJECTED: (
        VersionState.IMPORTING,
        VersionState.INSPECTING,
        VersionState.PROBING,
    ),
    VersionState.QUARANTINED: (VersionState.READY,),
}


def add_version(*, model: Model, facts: dict[str, Any]) -> ModelVersion:
    """Add the next version of a model, in state importing."""
    with transaction.atomic():
        Model.objects.select_for_update().get(pk=model.pk)
        last = model.versions.aggregate(last=Max("number"))["last"] or 0
        return ModelVersion.objects.create(model=model, number=last + 1, facts=facts)


def move_version(*, version: ModelVersion, state: VersionState, reason: str = "") -> None:
    """Move a version along its arrows; raises ValidationError if another process moved it."""
    rows = ModelVersion.objects.filter(pk=version.pk, state__in=_FROM[state]).update(
        state=state, reason=reason, updated_at=timezone.now()
    )
    if rows != 1:
        raise ValidationError(f"{version} cannot become {state.label.lower()} now.", code="state")
    version.state, version.reason = state, reason


def make_current(*, version: ModelVersion) -> None:
    """Serve this version; deployments that are not pinned replace their replicas."""
    with transaction.atomic():
        model = Model.objects.select_for_update().get(pk=version.model_id)
        version.refresh_from_db(fields=["state", "is_current"])
        if version.state != VersionState.READY:
            raise ValidationError("Only a ready version can be current.", code="state")
        if version.is_current:
            return
        now = timezone.now()
        with noted(model.versions.all()):
            model.versions.filter(is_current=True).update(is_current=False, updated_at=now)
            chosen = model.versions.filter(pk=version.pk)
            chosen.update(is_current=True, made_current_at=now, updated_at=now)
        version.is_current, version.made_current_at = True, now
        followers = Deployment.objects.filter(model=model, pinned_version=None)
        followers.update(generation=F("generation") + 1, updated_at=now)


def find_rollback(*, model: Model) -> ModelVersion | None:
    """Give the version that was current before, if it could be again."""
    others = model.versions.filter(is_current=False, state=VersionState.READY)
    return others.filter(made_current_at__isnull=False).order_by("-made_current_at").first()


def quarantine_version(*, version: ModelVersion, reason: str) -> None:
    """Take a version out of service because a stored file is no longer what was examined."""
    move_version(version=version, state=VersionState.QUARANTINED, reason=reason)


def quarantine_file(*, sha256: str, reason: str) -> int:
    """Take every ready version that uses a file out of service; gives their number."""
    users = ModelVersion.objects.filter(files__file__sha256=sha256, state=VersionState.READY)
    versions = list(users.distinct())
    for version in versions:
        quarantine_version(version=version, reason=reason)
    return len(versions)
