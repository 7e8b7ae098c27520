"""Registry work that takes longer than a request: run by the control worker."""

import logging
from pathlib import Path

from celery import shared_task
from django.core.exceptions import ValidationError
from django.db import transaction
from kombu.exceptions import OperationalError

from models_registry.behalf import working_for
from models_registry.incoming.checking import check_upload
from models_registry.incoming.cleaning import remove_abandoned, resume_stopped
from models_registry.incoming.fetching.threads import find_waiting, start_fetch
from models_registry.incoming.receiving import close_upload
from models_registry.models import ModelImport, ModelVersion, Upload, VersionState
from models_registry.services.deployments import create_deployment
from models_registry.services.importing import (
    finish_import,
    refresh_facts,
    reject_stale_imports,
)
from models_registry.services.probing import find_unprobed, probe_again
from models_registry.services.store import Source, remove_unused_files

logger = logging.getLogger(__name__)


@shared_task(name="models_registry.finish_import", ignore_result=True)
def finish_import_task(
    version_pk: int, paths: list[str], is_deployed: bool, is_linked: bool = False, owner: str = ""
) -> None:
    """Store and examine the files of a version; its state tells how that went."""
    version = ModelVersion.objects.filter(pk=version_pk, state=VersionState.IMPORTING).first()
    if version is None:
        return
    sources = [Source(Path(path), is_linked=is_linked) for path in paths]
    try:
        with working_for(owner):
            finish_import(version=version, sources=sources)
            if is_deployed and not version.model.deployments.exists():
                create_deployment(model=version.model)
    except ValidationError:
        # The version is rejected with the reason; there is nobody here to tell.
        return


@shared_task(name="models_registry.check_upload", ignore_result=True)
def check_upload_task(upload_id: str) -> None:
    """Check a file whose bytes are all here, and go on with its import."""
    upload = Upload.objects.select_related("model_import").filter(pk=upload_id).first()
    if upload is not None:
        check_upload(upload)


@shared_task(name="models_registry.fetch_upload", ignore_result=True)
def fetch_upload_task(upload_id: str) -> None:
    """Fetch a file, beside the tasks."""
    start_fetch(upload_id)


@shared_task(name="models_registry.look_after_imports", ignore_result=True)
def look_after_imports_task() -> None:
    """Go on with what a crash has stopped: fetches, checks, imports."""
    for upload_id in find_waiting():
        start_fetch(upload_id)
    resume_stopped(check_upload_task.delay)


@shared_task(name="models_registry.probe_again", ignore_result=True)
def probe_again_task() -> None:
    """Probe what this build of the engine has not probed."""
    for version in find_unprobed():
        probe_again(version)


@shared_task(name="models_registry.tidy", ignore_result=True)
def tidy_registry_task() -> None:
    """Clean up what crashes and cascading deletions have left; meant for now and then."""
    reject_stale_imports()
    remove_abandoned()
    remove_unused_files()
    refresh_facts()


def hand_on(upload: Upload) -> None:
    """Have a file checked if it is whole, once that is certain."""
    if close_upload(upload):
        ask_for_check(upload.pk)


def go_on(model_import: ModelImport) -> None:
    """Have an import looked at that may wait for nothing any more."""
    upload_id = model_import.uploads.values_list("pk", flat=True).first()
    if upload_id is not None:
        ask_for_check(upload_id)


def ask_for_check(upload_id: str) -> None:
    """Ask the control worker; where no message gets through, it looks by itself in a while."""
    _send_later(check_upload_task, upload_id)


def ask_for_fetch(upload_id: str) -> None:
    """Likewise for a file that is to be fetched."""
    _send_later(fetch_upload_task, upload_id)


def _send_later(task: object, upload_id: str) -> None:
    def send() -> None:
        try:
            task.apply_async((upload_id,), retry=False)  # type: ignore[attr-defined]
        except OperationalError:
            logger.warning("No broker to tell of upload %s", upload_id[:8])

    transaction.on_commit(send)
