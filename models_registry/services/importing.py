"""Bring files into the registry: look, register, store, examine, serve."""

import contextlib
import logging
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from inference.gguf.build import engine_build
from inference.gguf.examine import inspect_files, probe_files
from inference.gguf.summary import ModelSummary
from inference.gguf.verdict import GgufRejected
from inference.protocol.replicas import ModelKind
from models_registry.models import FileRole, Model, ModelVersion, VersionFile, VersionState
from models_registry.models.version import UNDER_WAY
from models_registry.names import display_text
from models_registry.services.store import (
    Source,
    place_file,
    remove_unused_files,
    stage_file,
    store_lock,
)
from models_registry.services.versions import add_version, make_current, move_version

logger = logging.getLogger(__name__)
STALE_AFTER = timedelta(hours=6)


class ImportRejected(ValidationError):
    """The files cannot be served. ``code`` and ``byte_offset`` tell where they fail."""

    def __init__(self, error: GgufRejected) -> None:
        super().__init__(error.reason, code=error.code)
        self.byte_offset = error.byte_offset


def import_model_files(
    *,
    paths: Sequence[Path],
    slug: str,
    title: str = "",
    kind: ModelKind | None = None,
    description: str = "",
    owned_by: str = "llamero",
    is_new_version: bool = False,
    are_ours: bool = False,
) -> ModelVersion:
    """Import files (of one model, in any order) as a version that is current when it is ready.

    Without ``kind`` it is guessed from the header. With ``is_new_version`` the model must exist,
    else it must not. With ``are_ours`` the files are moved instead of copied. Raises
    ImportRejected, or ValidationError for bad names; what fails in the header leaves no row.
    """
    version = begin_import(
        paths=paths,
        slug=slug,
        title=title,
        kind=kind,
        description=description,
        owned_by=owned_by,
        is_new_version=is_new_version,
    )
    finish_import(version=version, sources=[Source(path, is_ours=are_ours) for path in paths])
    return version


def begin_import(
    *,
    paths: Sequence[Path],
    slug: str,
    title: str = "",
    kind: ModelKind | None = None,
    description: str = "",
    owned_by: str = "llamero",
    is_new_version: bool = False,
) -> ModelVersion:
    """Check names and headers (quick), then register a version in state importing."""
    model = Model(slug=slug, title=title or slug, description=description, owned_by=owned_by)
    model.kind = kind or ModelKind.CHAT
    if is_new_version:
        model = Model.objects.filter(slug=slug).first() or _no_such_model()
    else:
        model.full_clean()
    summary = inspect_sources(paths)
    if not is_new_version:
        model.kind = kind or summary.kind
    check_kind(ModelKind(model.kind), summary)
    try:
        with transaction.atomic():
            model.save()
            return add_version(model=model, facts=msgspec.to_builtins(summary))
    except IntegrityError as error:
        raise ValidationError({"slug": "This name was just taken by another import."}) from error


def check_kind(kind: ModelKind, summary: ModelSummary) -> None:
    """Refuse a kind that the files are not made for; raises ValidationError."""
    if kind.is_generative and not summary.can_generate:
        raise ValidationError({"kind": f"A {summary.architecture} model cannot generate text."})


def withdraw_import(*, version: ModelVersion, is_new_version: bool) -> None:
    """Undo begin_import, when nobody can go on with it."""
    if is_new_version:
        version.delete()
    else:
        version.model.delete()


def reject_stale_imports() -> int:
    """Reject versions whose import has been silent for hours; give their number."""
    oldest = timezone.now() - STALE_AFTER
    stale = ModelVersion.objects.filter(state__in=UNDER_WAY, updated_at__lt=oldest)
    for version in stale:
        reject_version(version, "The import was interrupted. Import the file again.")
    return len(stale)


def refresh_facts() -> int:
    """Read the headers again of versions that were imported before their sizes were kept.

    Gives their number. A file that cannot be read any more is left to what checks files.
    """
    num_read = 0
    for version in ModelVersion.objects.filter(state=VersionState.READY).exclude(
        facts__has_key="memory"
    ):
        try:
            summary = inspect_files(weights_of(version))
        except GgufRejected as error:
            logger.warning("the header of %s cannot be read again: %s", version, error.reason)
            continue
        facts = msgspec.to_builtins(summary)
        num_read += ModelVersion.objects.filter(pk=version.pk).update(facts=facts)
    return num_read


def _no_such_model() -> Model:
    raise ValidationError({"slug": "There is no model of this name."})


def inspect_sources(paths: Sequence[Path]) -> ModelSummary:
    """Inspect files where they lie; raises ImportRejected."""
    try:
        return inspect_files(paths)
    except GgufRejected as error:
        raise ImportRejected(error) from error


def finish_import(*, version: ModelVersion, sources: Sequence[Source]) -> None:
    """Store the files of a version and examine what was stored; make it current if all is well.

    The weights are those that it was begun with, in the same order; projectors are kept beside
    them. Raises ImportRejected after recording it: the version is then rejected, with the reason.
    """
    try:
        _store_files(version, sources)
        examine_version(version=version)
    except GgufRejected as error:
        reject_version(version, f"{error.reason} ({error.code})")
        raise ImportRejected(error) from error
    except Exception as error:
        words = error.messages[0] if isinstance(error, ValidationError) else type(error).__name__
        reject_version(version, f"The import failed: {words}")
        raise
    make_current(version=version)


def examine_version(*, version: ModelVersion) -> None:
    """Inspect and probe the stored files of a version, up to state ready; raises GgufRejected."""
    stored = weights_of(version)
    move_version(version=version, state=VersionState.INSPECTING)
    summary = inspect_files(stored)
    if list(summary.file_order) != list(range(len(stored))):
        raise GgufRejected("shards_incomplete", "The files changed while they were imported.")
    version.facts = msgspec.to_builtins(summary)
    version.save(update_fields=["facts", "updated_at"])
    move_version(version=version, state=VersionState.PROBING)
    probe_files(stored)
    version.probed_build = engine_build()
    version.save(update_fields=["probed_build", "updated_at"])
    move_version(version=version, state=VersionState.READY)


def weights_of(version: ModelVersion) -> list[Path]:
    """Give where a version's weights lie, the first shard first."""
    uses = version.files.filter(role=FileRole.WEIGHTS).select_related("file")
    return [use.file.path for use in uses.order_by("position")]


def _store_files(version: ModelVersion, sources: Sequence[Source]) -> None:
    """Copy first (slow, no lock, no transaction), then place and register all files at once."""
    weights = [source for source in sources if source.role == FileRole.WEIGHTS]
    others = [source for source in sources if source.role != FileRole.WEIGHTS]
    ordered = [*(weights[index] for index in version.facts["file_order"]), *others]
    positions: Counter[FileRole] = Counter()
    with contextlib.ExitStack() as stack:
        staged = [stack.enter_context(stage_file(source)) for source in ordered]
        with store_lock(), transaction.atomic():
            for source, file in zip(ordered, staged, strict=True):
                VersionFile.objects.create(
                    version=version,
                    file=place_file(file, source.owner),
                    role=source.role,
                    position=positions[source.role],
                    display_name=display_text(source.name or source.path.name),
                )
                positions[source.role] += 1


def reject_version(version: ModelVersion, reason: str) -> None:
    """Record why a version cannot be served, and give its disk space back."""
    # A version that somebody deleted meanwhile cannot move, and need not.
    with contextlib.suppress(ValidationError):
        move_version(version=version, state=VersionState.REJECTED, reason=reason)
    version.files.all().delete()
    transaction.on_commit(remove_unused_files)
