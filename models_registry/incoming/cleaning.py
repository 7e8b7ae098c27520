"""Remove what nobody finished, and go on with what a crash has stopped."""

from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from models_registry.incoming.assembling import is_complete, revive
from models_registry.incoming.receiving import close_upload
from models_registry.models import ImportState, ModelImport, Upload, UploadState
from models_registry.models.incoming import incoming_folder

# A check that has not ended by then has lost its task, or its worker.
STUCK_AFTER = timedelta(minutes=2)


def remove_abandoned() -> int:
    """Remove imports without a sign of life for a day, and files that belong to none."""
    oldest = timezone.now() - timedelta(hours=settings.UPLOAD_HOURS)
    gone = ModelImport.objects.filter(touched_at__lt=oldest).exclude(state=ImportState.IMPORTING)
    num_removed = 0
    for model_import in gone.exclude(uploads__touched_at__gte=oldest):
        model_import.delete()
        num_removed += 1
    _remove_orphans(oldest.timestamp())
    return num_removed


def resume_stopped(check: Callable[[str], object]) -> int:
    """Have ``check`` called for files, by id, whose check or import a crash has stopped."""
    oldest = timezone.now() - STUCK_AFTER
    for model_import in ModelImport.objects.filter(
        state=ImportState.IMPORTING, touched_at__lt=oldest
    ):
        revive(model_import)
    stuck = {
        upload.pk
        for upload in Upload.objects.filter(state=UploadState.CHECKING, touched_at__lt=oldest)
    }
    for upload in Upload.objects.filter(state=UploadState.RECEIVING, touched_at__lt=oldest):
        if close_upload(upload):
            stuck.add(upload.pk)
    for model_import in ModelImport.objects.filter(
        state=ImportState.WAITING, touched_at__lt=oldest
    ):
        if is_complete(model_import):
            stuck.add(model_import.uploads.values_list("pk", flat=True)[0])
    for upload_id in stuck:
        check(upload_id)
    return len(stuck)


def _remove_orphans(oldest: float) -> None:
    """Remove what lies about without a row: deletions by cascade leave it to us."""
    known = set(Upload.objects.values_list("pk", flat=True))
    imports = set(ModelImport.objects.values_list("pk", flat=True))
    for path in incoming_folder().iterdir():
        is_known = path.name in known or path.name.removesuffix(".lock") in imports
        if not is_known and path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
