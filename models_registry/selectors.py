"""What is served right now, and what control should run: reads only, a few queries each."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from django.db.models import FilteredRelation, Prefetch, Q, QuerySet, Value

from inference.gguf.memory import MemoryEstimate
from inference.protocol.nodes import Device
from inference.protocol.replicas import LoraAdapter, ModelKind, RuntimeProfile
from models_registry.memory import estimate_replica
from models_registry.models import (
    Deployment,
    DeploymentAdapter,
    DeploymentState,
    FileRole,
    ModelAlias,
    ModelFile,
    ModelVersion,
    VersionFile,
    VersionState,
)
from models_registry.names import may_be_published


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A published model with the deployment that answers for it. ``facts`` sum up its header.

    ``routes`` are all its deployments that may answer, this one too, each with its ``share`` of the
    requests. ``fallback`` is the model that answers when none of them can; one that does so itself
    is told by ``stands_in_for``. ``request_defaults`` are the fields that a request has where it
    does not name them.
    """

    id: str
    deployment: str
    kind: ModelKind
    created: int
    owned_by: str
    profile: RuntimeProfile
    facts: dict[str, Any]
    model_pk: int
    title: str = ""
    aliases: tuple[str, ...] = ()
    state: str = DeploymentState.PENDING.value
    reason: str = ""
    version: int = 0
    text_retention_days: int = 0
    share: int = 1
    request_defaults: dict[str, Any] = field(default_factory=dict)
    routes: tuple["ServedModel", ...] = ()
    fallback: str = ""
    stands_in_for: str = ""

    @property
    def quantization(self) -> str:
        """How the weights that answer are kept: as in the file, unless they are converted."""
        return self.profile.weight_type.upper() or str(self.facts.get("quantization", ""))


@dataclass(frozen=True, slots=True)
class DeploymentTarget:
    """What should run for a deployment. No ``files`` means there is no ready version to run."""

    deployment: str
    model: str
    kind: ModelKind
    enabled: bool
    generation: int
    min_replicas: int
    max_replicas: int
    profile: RuntimeProfile
    files: tuple[str, ...]
    sha256: tuple[str, ...]
    version_pk: int | None
    state: str
    reason: str
    facts: dict[str, Any]
    draft_files: tuple[str, ...] = ()
    draft_sha256: tuple[str, ...] = ()
    draft_facts: dict[str, Any] = field(default_factory=dict)
    loras: tuple[LoraAdapter, ...] = ()
    adapter_bytes: int = 0
    ignores_memory: bool = False
    idle_timeout_seconds: int = 0
    target_ttft_seconds: float = 0.0
    is_draining: bool = False

    def estimate(self, gpus: Sequence[Device] = ()) -> MemoryEstimate | None:
        """Estimate the memory of one replica on a node with these GPUs, if the header is known."""
        return estimate_replica(
            kind=self.kind,
            profile=self.profile,
            facts=self.facts,
            draft_facts=self.draft_facts,
            adapter_bytes=self.adapter_bytes,
            gpus=gpus,
        )


def find_served_model(name: str) -> ServedModel | None:
    """Find what answers to a published id or alias, spelled exactly so; slugs win over aliases."""
    if not may_be_published(name):
        return None
    aliased = ModelAlias.objects.filter(name=name).values("model")
    served = _served(Q(model__slug=name) | Q(model__in=aliased))
    return next((one for one in served if one.id == name), served[0] if served else None)


def list_served_models() -> list[ServedModel]:
    """List every published model that has an enabled deployment with a ready version, by id."""
    return _served(Q())


def list_deployment_targets() -> list[DeploymentTarget]:
    """List all deployments, disabled ones too, each with the files its replicas load."""
    found = list(with_parts(Deployment.objects.order_by("model__slug", "pk")))
    versions = [one for each in found for one in (_version_of(each), draft_of(each)) if one]
    files = _weights_of([version.pk for version in versions])
    return [_target(deployment, files) for deployment in found]


def _weights_of(versions: list[int]) -> dict[int, list[ModelFile]]:
    """Give the weights of versions, first shard first."""
    uses = VersionFile.objects.filter(version__in=versions, role=FileRole.WEIGHTS)
    files: dict[int, list[ModelFile]] = {}
    for use in uses.select_related("file").order_by("version", "position"):
        files.setdefault(use.version_id, []).append(use.file)
    return files


def with_parts(deployments: QuerySet[Deployment]) -> QuerySet[Deployment]:
    """Take along all that a replica loads: versions and adapters, in two queries."""
    adapters = DeploymentAdapter.objects.select_related("file")
    return with_versions(deployments).prefetch_related(Prefetch("adapters", adapters))


def estimate_deployment(
    deployment: Deployment, gpus: Sequence[Device] = ()
) -> MemoryEstimate | None:
    """Estimate the memory of one replica; no queries for a deployment of ``with_parts``."""
    version = version_shown(deployment)
    draft = draft_of(deployment)
    adapters = deployment.adapters.all() if deployment.pk else []
    return estimate_replica(
        kind=deployment.kind,
        profile=deployment.profile,
        facts=version.facts if version else {},
        draft_facts=draft.facts if draft else None,
        adapter_bytes=sum(adapter.file.size_bytes for adapter in adapters),
        gpus=gpus,
    )


def version_shown(deployment: Deployment) -> ModelVersion | None:
    """Give the version that runs, ready or not; no queries for a deployment of ``with_parts``."""
    if deployment.pk and hasattr(deployment, "has_versions"):
        return deployment.pinned_version or getattr(deployment, "current_version", None)
    return deployment.version


def with_versions(deployments: QuerySet[Deployment]) -> QuerySet[Deployment]:
    """Take along the model, and the pinned, the current and the draft version: one query."""
    is_current = Q(model__versions__is_current=True)
    current = FilteredRelation("model__versions", condition=is_current)
    parts = ("model", "pinned_version", "current_version", "draft_version")
    # A model without one gets no current_version at all: this tells that it was looked for.
    known = deployments.annotate(current_version=current, has_versions=Value(True))
    return known.select_related(*parts)


def _version_of(deployment: Deployment) -> ModelVersion | None:
    """Give the version to run, if it is ready."""
    current: ModelVersion | None = getattr(deployment, "current_version", None)
    version = deployment.pinned_version or current
    return version if version is not None and version.state == VersionState.READY else None


def draft_of(deployment: Deployment) -> ModelVersion | None:
    """Give the model that guesses, if it is asked for and ready."""
    draft = deployment.draft_version if deployment.speculation == "draft" else None
    return draft if draft is not None and draft.state == VersionState.READY else None


def _served(condition: Q) -> list[ServedModel]:
    """One served model per model: a ready deployment is preferred, then the oldest.

    What is stopped is served only where another model may answer in its place.
    """
    is_meant = Q(enabled=True, is_draining=False) | Q(model__fallback__isnull=False)
    found = (
        with_versions(Deployment.objects.filter(condition & is_meant))
        .select_related("model__fallback")
        .prefetch_related("model__aliases")
        .order_by("model__slug", "pk")
    )
    routes: dict[int, list[ServedModel]] = {}
    for deployment in found:
        version = _version_of(deployment)
        if version is not None or deployment.model.fallback_id is not None:
            routes.setdefault(deployment.model_id, []).append(_served_model(deployment, version))
    return [_first_ready(each) for each in routes.values()]


def _first_ready(routes: list[ServedModel]) -> ServedModel:
    first = next((one for one in routes if one.state == DeploymentState.READY), routes[0])
    return replace(first, routes=tuple(routes))


def _served_model(deployment: Deployment, version: ModelVersion | None) -> ServedModel:
    model = deployment.model
    state = deployment.state
    if version is None or deployment.is_draining or not deployment.enabled:
        state = DeploymentState.STOPPED.value
    return ServedModel(
        id=model.slug,
        deployment=deployment.slug,
        kind=deployment.kind,
        created=int(model.created_at.timestamp()),
        owned_by=model.owned_by,
        profile=deployment.profile,
        facts=version.facts if version else {},
        model_pk=model.pk,
        title=model.title,
        aliases=tuple(alias.name for alias in model.aliases.all()),
        state=state,
        reason=deployment.reason,
        version=version.number if version else 0,
        text_retention_days=deployment.text_retention_days,
        share=deployment.share,
        request_defaults=deployment.request_defaults,
        fallback=model.fallback.slug if model.fallback else "",
    )


def _target(deployment: Deployment, weights: dict[int, list[ModelFile]]) -> DeploymentTarget:
    version, draft = _version_of(deployment), draft_of(deployment)
    files = weights.get(version.pk, []) if version else []
    draft_files = weights.get(draft.pk, []) if draft else []
    adapters = deployment.adapters.all()
    return DeploymentTarget(
        deployment=deployment.slug,
        model=deployment.model.slug,
        kind=deployment.kind,
        enabled=deployment.enabled,
        generation=deployment.generation,
        min_replicas=deployment.min_replicas,
        max_replicas=deployment.max_replicas,
        profile=_runnable_profile(deployment, has_draft=bool(draft_files)),
        files=tuple(str(file.path) for file in files),
        sha256=tuple(file.sha256 for file in files),
        version_pk=version.pk if version else None,
        state=deployment.state,
        reason=deployment.reason,
        facts=version.facts if version else {},
        draft_files=tuple(str(file.path) for file in draft_files),
        draft_sha256=tuple(file.sha256 for file in draft_files),
        draft_facts=draft.facts if draft else {},
        loras=tuple(adapter.spec for adapter in adapters),
        adapter_bytes=sum(adapter.file.size_bytes for adapter in adapters),
        ignores_memory=deployment.ignores_memory,
        idle_timeout_seconds=deployment.idle_timeout_seconds,
        target_ttft_seconds=deployment.target_ttft_seconds,
        is_draining=deployment.is_draining,
    )


def _runnable_profile(deployment: Deployment, *, has_draft: bool) -> RuntimeProfile:
    """Give the profile; a draft model that is not ready is done without: the text is the same."""
    profile = deployment.profile
    if profile.speculation == "draft" and not has_draft:
        return msgspec.structs.replace(profile, speculation="")
    return profile
