"""Files and batches as their owners see them."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from llamero.batches.models import Batch, BatchState, StoredFile
from llamero.batches.running.usage import FIELDS

Row = TypeVar("Row")
_MOMENTS = tuple(f"{state}_at" for state in BatchState if state != BatchState.VALIDATING)


def describe_file(file: StoredFile) -> dict[str, Any]:
    """Give OpenAI's file object, with the hash of what it holds."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.num_bytes,
        "created_at": _seconds(file.created_at),
        "expires_at": _seconds(file.expires_at),
        "filename": file.filename,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
        "sha256": file.sha256,
    }


def describe_batch(batch: Batch) -> dict[str, Any]:
    """Give OpenAI's batch object."""
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "model": batch.model or None,
        "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
        "input_file_id": batch.input_file,
        "completion_window": "24h",
        "status": batch.state,
        "output_file_id": batch.output_file or None,
        "error_file_id": batch.error_file or None,
        "created_at": _seconds(batch.created_at),
        "expires_at": _seconds(batch.expires_at),
        **{name: _seconds(getattr(batch, name)) for name in _MOMENTS},
        "request_counts": {
            "total": batch.num_total,
            "completed": batch.num_completed,
            "failed": batch.num_failed,
        },
        "usage": _describe_usage(batch.usage),
        "metadata": batch.metadata,
    }


def describe_page(
    rows: Sequence[Row], describe: Callable[[Row], dict[str, Any]], has_more: bool
) -> dict[str, Any]:
    """Give a part of a list."""
    data = [describe(row) for row in rows]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }


def _describe_usage(usage: dict[str, int]) -> dict[str, Any]:
    counts = {name: usage.get(name, 0) for name in FIELDS}
    return {
        "input_tokens": counts["input_tokens"],
        "input_tokens_details": {"cached_tokens": counts["cached_tokens"]},
        "output_tokens": counts["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": counts["reasoning_tokens"]},
        "total_tokens": counts["total_tokens"],
    }


def _seconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp())
