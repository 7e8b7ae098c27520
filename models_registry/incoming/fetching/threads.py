"""Fetches of this process, each in a thread that ends with it: hours of waiting hold up no task.

Whatever is cut off goes on elsewhere, or here after a restart: ``find_waiting`` finds it.
"""

import logging
import threading
from datetime import timedelta

from django.db import connections
from django.utils import timezone

from models_registry.incoming.checking import check_upload
from models_registry.incoming.fetching.fetching import fetch_upload
from models_registry.models import Upload, UploadState

logger = logging.getLogger(__name__)
MAX_FETCHES = 3
# Without a sign of life for so long nobody fetches it; sooner only if it has never begun.
SILENT_AFTER = timedelta(seconds=45)
_running: set[str] = set()
_guard = threading.Lock()


def start_fetch(upload_id: str) -> bool:
    """Fetch a file beside everything else; tell whether that began, or is under way here."""
    with _guard:
        if upload_id in _running:
            return True
        if len(_running) >= MAX_FETCHES:
            return False
        _running.add(upload_id)
    name = f"fetch-{upload_id[:8]}"
    threading.Thread(target=_run, args=(upload_id,), name=name, daemon=True).start()
    return True


def find_waiting() -> list[str]:
    """List the files that should be fetched and are not, the oldest first."""
    oldest = timezone.now() - SILENT_AFTER
    waiting = Upload.objects.filter(state=UploadState.RECEIVING, touched_at__lt=oldest)
    return list(waiting.exclude(source_url="").values_list("pk", flat=True))


def _run(upload_id: str) -> None:
    try:
        upload = Upload.objects.select_related("model_import").filter(pk=upload_id).first()
        if upload is not None and fetch_upload(upload):
            check_upload(upload)
    except Exception:
        logger.exception("fetching %s failed", upload_id[:8])
    finally:
        with _guard:
            _running.discard(upload_id)
        connections.close_all()
