"""Registry work that takes longer than a request: run by the control worker."""

from pathlib import Path

from celery import shared_task
from django.core.exceptions import ValidationError

from models_registry.models import ModelVersion, VersionState
from models_registry.services.deployments import create_deployment
from models_registry.services.importing import (
    finish_import,
    refresh_facts,
    reject_stale_imports,
)
from models_registry.services.store import remove_unused_files


@shared_task(name="models_registry.finish_import", ignore_result=True)
def finish_import_task(version_pk: int, paths: list[str], is_deployed: bool) -> None:
    """Store and examine the files of a version; its state tells how that went."""
    version = ModelVersion.objects.filter(pk=version_pk, state=VersionState.IMPORTING).first()
    if version is None:
        return
    try:
        finish_import(version=version, paths=[Path(path) for path in paths])
        if is_deployed and not version.model.deployments.exists():
            create_deployment(model=version.model)
    except ValidationError:
        # The version is rejected with the reason; there is nobody here to tell.
        return


@shared_task(name="models_registry.tidy", ignore_result=True)
def tidy_registry_task() -> None:
    """Clean up what crashes and cascading deletions have left; meant for now and then."""
    reject_stale_imports()
    remove_unused_files()
    refresh_facts()
