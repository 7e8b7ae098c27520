"""Imports of an operator at a shell: the same road, walked at once and to its end."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from django.core.exceptions import ValidationError

from inference.gguf.examine import open_regular
from inference.gguf.verdict import GgufRejected
from models_registry.incoming.assembling import wish_import
from models_registry.incoming.checking import check_upload
from models_registry.incoming.fetching.fetching import Progress, fetch_upload
from models_registry.incoming.receiving import close_upload, remove_import
from models_registry.incoming.refusal import UploadRefused
from models_registry.incoming.sources import FetchedFile, add_fetched_files
from models_registry.models import ImportState, ModelImport, ModelVersion, Upload, UploadState
from models_registry.names import display_text
from models_registry.services.importing import ImportRejected
from models_registry.services.store import copy_file


def import_by_command(
    *,
    owner: str,
    wish: dict[str, object],
    paths: Sequence[tuple[Path, str]] = (),
    fetched: Sequence[FetchedFile] = (),
    tell: Progress = lambda _upload, _received: None,
) -> ModelVersion | None:
    """Copy and fetch files, check them, and make of them what is wished; gives the version.

    ``paths`` come with their hashes, as far as they are known. Raises ValidationError; a fetch
    that was cut off is remembered, and goes on when the control worker finds it.
    """
    model_import = ModelImport.objects.create(owner=owner)
    try:
        uploads = [_copy(model_import, path, sha256) for path, sha256 in paths]
        uploads += add_fetched_files(model_import, fetched)
        wish_import(model_import, wish)
    except UploadRefused as error:
        remove_import(model_import)
        raise ValidationError(error.message) from error
    except ValidationError:
        remove_import(model_import)
        raise
    for upload in uploads:
        fetch_upload(upload, tell=tell)
        upload.refresh_from_db()
        check_upload(upload)
    return _read_outcome(model_import)


def _copy(model_import: ModelImport, path: Path, sha256: str) -> Upload:
    """Take a copy of a file of this machine; a link costs the operator nothing to resolve."""
    try:
        with open_regular(path) as fd:
            upload = Upload.objects.create(
                model_import=model_import, display_name=display_text(path.name), sha256=sha256
            )
            upload.size_bytes = copy_file(fd, upload.path)
    except GgufRejected as error:
        raise ImportRejected(error) from error
    upload.save(update_fields=["size_bytes"])
    close_upload(upload)
    return upload


def _read_outcome(model_import: ModelImport) -> ModelVersion | None:
    model_import.refresh_from_db()
    if model_import.state == ImportState.DONE:
        return model_import.version
    reason = model_import.reason
    for upload in model_import.uploads.exclude(state=UploadState.COMPLETE):
        reason = f"{upload}: {upload.reason or 'it is not all here.'}"
    is_going_on = model_import.uploads.filter(state=UploadState.RECEIVING).exists()
    if not is_going_on:
        with contextlib.suppress(UploadRefused):
            remove_import(model_import)
    raise ValidationError(reason or "The import did not end.")
