"""Make of the files of an import what was wished for, once they are all there."""

import contextlib
import fcntl
import logging
from collections.abc import Iterator

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from inference.gguf.recognise import FilePart
from inference.protocol.replicas import ModelKind
from models_registry.behalf import working_for
from models_registry.incoming.companions import facts_of, missing_shards
from models_registry.incoming.wishes import Wish, check_wish, read_wish
from models_registry.models import (
    FileRole,
    ImportState,
    Model,
    ModelImport,
    Upload,
    UploadState,
    VersionState,
)
from models_registry.models.incoming import incoming_folder
from models_registry.names import adapter_name_for
from models_registry.services.adapters import add_adapter
from models_registry.services.deployments import create_deployment
from models_registry.services.importing import begin_import, finish_import, withdraw_import
from models_registry.services.store import Source

logger = logging.getLogger(__name__)
_MAY_BE_WISHED = (ImportState.OPEN, ImportState.WAITING, ImportState.FAILED)


def wish_import(model_import: ModelImport, fields: dict[str, object]) -> None:
    """Say what an import is to become; it begins by itself when its files are there.

    Raises ValidationError for a bad wish, and for files that can never become it.
    """
    wish = check_wish(fields)
    problem = find_problem(model_import, wish)
    if problem:
        raise ValidationError({"files": problem})
    moved = ModelImport.objects.filter(pk=model_import.pk, state__in=_MAY_BE_WISHED).update(
        state=ImportState.WAITING, wish=_as_dict(wish), reason="", touched_at=timezone.now()
    )
    model_import.refresh_from_db()
    if moved != 1:
        words = f"This import is {model_import.get_state_display().lower()}."
        raise ValidationError({"files": words}, code="state")


def is_complete(model_import: ModelImport) -> bool:
    """Tell whether an import waits for nothing any more."""
    if model_import.state != ImportState.WAITING:
        return False
    states = set(model_import.uploads.values_list("state", flat=True))
    return bool(states) and states <= {UploadState.COMPLETE, UploadState.REFUSED}


def assemble(model_import: ModelImport) -> None:
    """Run an import that is complete; its state tells how that went. A second runner leaves."""
    with _runner_lock(model_import) as is_ours:
        if not is_ours or not _begin(model_import):
            return
        try:
            with working_for(model_import.owner):
                _run(model_import)
        except ValidationError as error:
            _fail(model_import, " ".join(error.messages))
        except Exception as error:
            _fail(model_import, f"The import failed: {type(error).__name__}.")
            raise
        else:
            _finish(model_import)


def revive(model_import: ModelImport) -> bool:
    """Let an import wait again whose runner has died; tell whether it had."""
    with _runner_lock(model_import) as is_ours:
        if not is_ours:
            return False
        version = model_import.version
        if version is not None and version.state != VersionState.READY:
            is_only = version.model.versions.count() == 1
            withdraw_import(version=version, is_new_version=not is_only)
        moved = ModelImport.objects.filter(pk=model_import.pk, state=ImportState.IMPORTING)
        return moved.update(state=ImportState.WAITING) == 1


def find_problem(model_import: ModelImport, wish: Wish) -> str:
    """Say why the files of an import can never become what is wished; empty if they may."""
    uploads = list(model_import.uploads.all())
    refused = [one for one in uploads if one.state == UploadState.REFUSED]
    if refused:
        return f"{refused[0]} was refused: {refused[0].reason} Remove it, or send another."
    if not uploads:
        return "There is no file yet."
    known = [found for one in uploads if (found := facts_of(one)) is not None]
    if len(known) < len(uploads):
        return ""
    parts = {found.part for found in known}
    if missing := missing_shards(known):
        numbers = ", ".join(map(str, missing[:10]))
        return f"The model's shards are not all here: {numbers} of {known[0].num_shards} missing."
    if FilePart.WEIGHTS not in parts:
        return _check_companions_alone(parts, wish)
    return ""


def _check_companions_alone(parts: set[FilePart], wish: Wish) -> str:
    if FilePart.PROJECTOR in parts:
        return "A projector comes with its model: send the model's file as well."
    model = Model.objects.filter(slug=wish.model).first()
    if model is None or not wish.is_new_version:
        return "These are adapters alone: choose the model that they belong to."
    if not model.deployments.exists():
        return f"{model} has no deployment yet, and adapters belong to deployments: add one first."
    return ""


@contextlib.contextmanager
def _runner_lock(model_import: ModelImport) -> Iterator[bool]:
    """Keep two runners apart; the kernel lets go for one that dies."""
    with (incoming_folder() / f"{model_import.id}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def _begin(model_import: ModelImport) -> bool:
    model_import.refresh_from_db()
    if not is_complete(model_import):
        return False
    moved = ModelImport.objects.filter(pk=model_import.pk, state=ImportState.WAITING)
    return moved.update(state=ImportState.IMPORTING, touched_at=timezone.now()) == 1


def _run(model_import: ModelImport) -> None:
    wish = read_wish(model_import)
    assert wish is not None, "an import that waits has a wish"
    if problem := find_problem(model_import, wish):
        raise ValidationError(problem)
    uploads = list(model_import.uploads.select_related("stored_file"))
    by_part: dict[FilePart, list[Upload]] = {part: [] for part in FilePart}
    for upload in uploads:
        facts = facts_of(upload)
        assert facts is not None, "a complete upload was looked at"
        by_part[facts.part].append(upload)
    if by_part[FilePart.WEIGHTS]:
        model = _import_version(model_import, wish, by_part)
    else:
        model = Model.objects.get(slug=wish.model)
    if wish.is_deployed and not model.deployments.exists():
        create_deployment(model=model)
    _attach_adapters(model_import, model, by_part[FilePart.ADAPTER])


def _import_version(
    model_import: ModelImport, wish: Wish, by_part: dict[FilePart, list[Upload]]
) -> Model:
    if model_import.version is not None:
        # An earlier run came so far.
        return model_import.version.model
    weights = [_source(upload, FileRole.WEIGHTS) for upload in by_part[FilePart.WEIGHTS]]
    others = [_source(upload, FileRole.MMPROJ) for upload in by_part[FilePart.PROJECTOR]]
    version = begin_import(
        paths=[source.path for source in weights],
        slug=wish.model,
        title=wish.title,
        kind=ModelKind(wish.kind) if wish.kind else None,
        is_new_version=wish.is_new_version,
    )
    ModelImport.objects.filter(pk=model_import.pk).update(version=version)
    model_import.version = version
    finish_import(version=version, sources=[*weights, *others])
    return version.model


def _attach_adapters(model_import: ModelImport, model: Model, uploads: list[Upload]) -> None:
    """Give the adapters to every deployment of the model, under the names of their files."""
    deployments = list(model.deployments.all())
    if uploads and not deployments:
        raise ValidationError(
            f"{model} is ready, but has no deployment that could have the adapters: add one, then "
            "import them again."
        )
    for upload in uploads:
        source = _source(upload, FileRole.LORA)
        for deployment in deployments:
            add_adapter(
                deployment=deployment, source=source, name=adapter_name_for(upload.display_name)
            )


def _source(upload: Upload, role: FileRole) -> Source:
    stored = upload.stored_file
    return Source(
        path=stored.path if stored else upload.path,
        name=upload.display_name,
        role=role,
        is_ours=True,
        sha256=upload.found_sha256,
        owner=upload.model_import.owner,
    )


def _finish(model_import: ModelImport) -> None:
    with transaction.atomic():
        ModelImport.objects.filter(pk=model_import.pk).update(
            state=ImportState.DONE, reason="", touched_at=timezone.now()
        )
        # The versions hold the blobs from now on.
        model_import.uploads.update(stored_file=None)
    for upload in model_import.uploads.all():
        upload.path.unlink(missing_ok=True)


def _fail(model_import: ModelImport, reason: str) -> None:
    logger.info("import %s failed", model_import.id[:8])
    ModelImport.objects.filter(pk=model_import.pk).update(
        state=ImportState.FAILED, reason=reason, touched_at=timezone.now()
    )


def _as_dict(wish: Wish) -> dict[str, object]:
    return {name: getattr(wish, name) for name in Wish.__struct_fields__}
