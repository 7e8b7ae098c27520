"""Bring LoRA adapters to deployments, and take them away."""

from pathlib import Path

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from inference.gguf.examine import inspect_adapter
from inference.gguf.verdict import GgufRejected
from models_registry.models import Deployment, DeploymentAdapter
from models_registry.services.importing import ImportRejected
from models_registry.services.store import place_file, stage_file, store_lock


def add_adapter(
    *, deployment: Deployment, path: Path, name: str, scale: float = 0.0
) -> DeploymentAdapter:
    """Store a file and list it last among a deployment's adapters; replicas are replaced.

    Raises ImportRejected for a file that is no adapter, ValidationError for one of another
    architecture than the model's, or a bad or taken name.
    """
    if deployment.adapters.filter(name=name).exists():
        raise ValidationError(
            f"{deployment} has an adapter {name} already: choose another name, or remove that one "
            "on the deployment's page."
        )
    _check_fit(deployment, path)
    with stage_file(path) as staged, store_lock(), transaction.atomic():
        last = deployment.adapters.aggregate(last=Max("position"))["last"]
        adapter = DeploymentAdapter(
            deployment=deployment,
            file=place_file(staged),
            name=name,
            scale=scale,
            position=0 if last is None else last + 1,
        )
        adapter.full_clean()
        adapter.save()
        Deployment.objects.filter(pk=deployment.pk).update(
            generation=F("generation") + 1, updated_at=timezone.now()
        )
    return adapter


def _check_fit(deployment: Deployment, path: Path) -> None:
    try:
        summary = inspect_adapter(path)
    except GgufRejected as error:
        raise ImportRejected(error) from error
    version = deployment.version
    architecture = version.facts.get("architecture") if version else None
    if architecture and architecture != summary.architecture:
        raise ValidationError(
            f"The adapter is for {summary.architecture} models, this one is {architecture}."
        )
