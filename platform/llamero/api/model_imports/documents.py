"""How imports and their files look to clients."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from models_registry.incoming.companions import facts_of
from models_registry.models import ModelImport, Upload


def describe_import(model_import: ModelImport) -> dict[str, Any]:
    """Describe an import and its files."""
    version = model_import.version
    return {
        "id": model_import.id,
        "object": "model.import",
        "status": model_import.state,
        "reason": model_import.reason or None,
        "model": model_import.wish.get("model"),
        "version": version.number if version else None,
        "version_status": version.state if version else None,
        "created_at": int(model_import.created_at.timestamp()),
        "expires_at": _timestamp(expiry_of(model_import)),
        "files": [describe_upload(upload) for upload in model_import.uploads.all()],
    }


def describe_upload(upload: Upload) -> dict[str, Any]:
    """Describe a file: how much of it is here, and what it is, once its header tells."""
    facts = facts_of(upload)
    return {
        "id": upload.id,
        "object": "model.upload",
        "import": upload.model_import_id,
        "filename": upload.display_name,
        "bytes": upload.size_bytes,
        "received": upload.num_received,
        "status": upload.state,
        "code": upload.code or None,
        "reason": upload.reason or None,
        "sha256": upload.found_sha256 or upload.sha256 or None,
        "was_here": upload.stored_file_id is not None,
        "source": upload.shown_source or None,
        "part": facts.part.value if facts else None,
        "architecture": facts.architecture if facts else None,
        "shard": facts.shard + 1 if facts else None,
        "num_shards": facts.num_shards if facts else None,
    }


def expiry_of(touched: ModelImport | Upload) -> datetime:
    """Give when what is not touched any more is given up."""
    expiry: datetime = touched.touched_at + timedelta(hours=settings.UPLOAD_HOURS)
    return expiry


def _timestamp(moment: datetime) -> int:
    return int(moment.timestamp())
