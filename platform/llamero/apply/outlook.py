"""What a model is, or will be when its files are here: its deployments are judged by that."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from django.core.exceptions import ValidationError

from inference.gguf.examine import inspect_file, inspect_files
from inference.gguf.recognise import FilePart
from inference.gguf.summary import ModelSummary
from inference.gguf.verdict import GgufRejected
from inference.protocol.replicas import ModelKind
from llamero.apply.files import WantedFile
from llamero.apply.mistakes import ApplyError, place_of
from models_registry.models import Model, ModelVersion
from models_registry.services.importing import check_kind


@dataclass(frozen=True, slots=True)
class Outlook:
    """The kind of a model and its version, unsaved if it is to come; None: not known before."""

    kind: ModelKind | None = None
    version: ModelVersion | None = None


def look_at(model: Model | None, kind: str | None) -> Outlook:
    """Give what a model is now, but for the kind that the file gives it."""
    if model is None:
        return Outlook()
    # What is no kind is told where the model's fields are judged.
    is_known = kind in [one.value for one in ModelKind]
    version = model.versions.filter(is_current=True).first()
    return Outlook(ModelKind(kind if kind and is_known else model.kind), version)


def look_ahead(
    wanted: Sequence[WantedFile], model: Model | None, kind: str | None, place: str
) -> Outlook:
    """Give what a model will be with new files, as far as they lie here; raises ApplyError."""
    paths = [file.path for file in wanted if file.path is not None]
    if len(paths) < len(wanted):
        return Outlook()
    summary = _inspect(paths, f"{place}.files")
    found = ModelKind(model.kind if model else kind or summary.kind)
    try:
        check_kind(found, summary)
    except ValidationError as error:
        raise place_of(error, place) from error
    return Outlook(ModelKind(kind or found), ModelVersion(facts=msgspec.to_builtins(summary)))


def _inspect(paths: Sequence[Path], place: str) -> ModelSummary:
    try:
        weights = [path for path in paths if _part_of(path) is not FilePart.PROJECTOR]
        return inspect_files(weights)
    except GgufRejected as error:
        raise ApplyError(place, error.reason) from error


def _part_of(path: Path) -> FilePart:
    facts = inspect_file(path, path.stat().st_size)
    part = facts.part if facts else FilePart.WEIGHTS
    if part is FilePart.ADAPTER:
        words = (
            f"{path.name} is a LoRA adapter: give it to a deployment by manage.py import_adapter."
        )
        raise GgufRejected("unsupported_kind", words)
    return part
