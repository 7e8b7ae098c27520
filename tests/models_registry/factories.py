"""Rows of the registry for tests, without files behind them unless said."""

from typing import Any

from models_registry.models import (
    Deployment,
    Model,
    ModelFile,
    ModelVersion,
    VersionFile,
    VersionState,
)


def make_model(slug: str = "tiny", **fields: Any) -> Model:
    """Make a model."""
    return Model.objects.create(slug=slug, title=fields.pop("title", slug.title()), **fields)


def make_version(
    model: Model,
    *,
    number: int = 1,
    state: VersionState = VersionState.READY,
    is_current: bool = True,
    sha256: str = "a" * 64,
    **fields: Any,
) -> ModelVersion:
    """Make a version with one file."""
    version = ModelVersion.objects.create(
        model=model, number=number, state=state, is_current=is_current, **fields
    )
    file, _ = ModelFile.objects.get_or_create(sha256=sha256, defaults={"size_bytes": 1000})
    VersionFile.objects.create(version=version, file=file, display_name="tiny.gguf")
    return version


def make_facts(*, width: int = 5760, **facts: Any) -> dict[str, Any]:
    """Give what a header says: one layer that keeps ``width`` keys and values per token."""
    layer = [1000, 0, width, width, 0]
    memory = {"layers": [layer], "input": [500], "output": [100], "num_vocab": 1000}
    return {"memory": memory, "size_bytes": 1600} | facts


def make_deployment(model: Model, slug: str = "", **fields: Any) -> Deployment:
    """Make a deployment."""
    return Deployment.objects.create(model=model, slug=slug or model.slug, **fields)
