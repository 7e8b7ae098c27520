"""What the page of a model shows above its form: what it is, what it needs, where it runs."""

from dataclasses import dataclass
from typing import Any

from inference.protocol.replicas import ModelKind
from models_registry.admin.confirmed import Step
from models_registry.admin.labels import list_facts
from models_registry.admin.memory_table import tabulate_memory
from models_registry.admin.shares import split_between
from models_registry.admin.version_steps import list_model_steps, list_version_steps
from models_registry.markdown import render_markdown
from models_registry.models import Deployment, Model, ModelVersion
from models_registry.rooms import list_rooms
from models_registry.weights import describe_conversion

MAX_VERSIONS = 20


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version, and what can be done with it."""

    version: ModelVersion
    steps: list[Step]


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    """Where it is deployed, and how much of the requests goes there while all serve."""

    deployment: Deployment
    version: ModelVersion | None
    requests: str
    conversion: str


def describe_model(model: Model, *, may_change: bool) -> dict[str, Any]:
    """Give the context of the page's upper part, in a fixed number of queries."""
    versions = list(model.versions.order_by("-number")[: MAX_VERSIONS + 1])
    current = model.versions.filter(is_current=True).first()
    for version in versions:
        version.model = model
    return {
        "model_steps": list_model_steps(model) if may_change else [],
        "description": render_markdown(model.description),
        "current": current,
        "version_rows": [
            VersionRow(one, list_version_steps(one) if may_change else [])
            for one in versions[:MAX_VERSIONS]
        ],
        "has_more_versions": len(versions) > MAX_VERSIONS,
        "deployment_rows": _list_deployments(model, current),
        **describe_version(current, ModelKind(model.kind)),
    }


def describe_version(version: ModelVersion | None, kind: ModelKind) -> dict[str, Any]:
    """Give what a version is, its files, and the memory it takes."""
    if version is None:
        return {"facts": [], "files": []}
    uses = version.files.select_related("file").order_by("role", "position")
    return {
        "shown_version": version,
        "facts": list_facts(version.facts),
        "files": list(uses),
        "memory_table": tabulate_memory(kind, version.facts, list_rooms()),
        "has_template": bool(version.facts.get("has_chat_template")),
    }


def _list_deployments(model: Model, current: ModelVersion | None) -> list[DeploymentRow]:
    deployments = list(model.deployments.select_related("pinned_version").order_by("slug"))
    for deployment in deployments:
        deployment.model = model
    split = split_between(deployments)
    rows = []
    for one in deployments:
        version = one.pinned_version or current
        conversion = describe_conversion(one, version)
        rows.append(DeploymentRow(one, version, split.describe(one), conversion))
    return rows
