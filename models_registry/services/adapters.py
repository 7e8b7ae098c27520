"""Bring LoRA adapters to deployments, and take them away."""

from pathlib import Path

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from inference.gguf.examine import inspect_adapter, probe_adapter
from inference.gguf.verdict import GgufRejected
from models_registry.models import Deployment, DeploymentAdapter, ModelFile, VersionState
from models_registry.services.importing import ImportRejected, weights_of
from models_registry.services.store import Source, place_file, stage_file, store_lock


def add_adapter(
    *, deployment: Deployment, source: Source, name: str, scale: float = 0.0
) -> DeploymentAdapter:
    """Store a file and list it last among a deployment's adapters; replicas are replaced.

    Raises ImportRejected for a file that is no adapter, or that llama.cpp does not load beside the
    model; ValidationError for one of another architecture, or a bad or taken name.
    """
    if deployment.adapters.filter(name=name).exists():
        raise ValidationError(
            f"{deployment} has an adapter {name} already: choose another name, or remove that one "
            "on the deployment's page."
        )
    _check_fit(deployment, source.path)
    with stage_file(source) as staged:
        _probe(deployment, staged.path)
        with store_lock(), transaction.atomic():
            return _list_adapter(deployment, place_file(staged, source.owner), name, scale)


def _list_adapter(
    deployment: Deployment, file: ModelFile, name: str, scale: float
) -> DeploymentAdapter:
    last = deployment.adapters.aggregate(last=Max("position"))["last"]
    adapter = DeploymentAdapter(
        deployment=deployment,
        file=file,
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


def _probe(deployment: Deployment, path: Path) -> None:
    """Have llama.cpp load what is to be stored, beside the model, in a process of its own."""
    version = deployment.version
    if version is None or version.state != VersionState.READY:
        return
    try:
        probe_adapter(weights_of(version), path)
    except GgufRejected as error:
        raise ImportRejected(error) from error


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
