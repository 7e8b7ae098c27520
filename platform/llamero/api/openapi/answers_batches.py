"""Files and batches, and the form by which files come."""

from llamero.api.openapi.shapes import (
    COUNT,
    FLAG,
    TEXT,
    Schema,
    list_of,
    map_of,
    one_of,
    or_null,
    ref,
    shape,
)
from llamero.batches.endpoints import ENDPOINTS
from llamero.batches.models import BatchState, Purpose

UPLOAD = shape(
    {"file": TEXT | {"format": "binary"}, "purpose": one_of("batch")},
    {"expires_after[anchor]": one_of("created_at"), "expires_after[seconds]": COUNT},
)
_PAGE = {"first_id": or_null(TEXT), "last_id": or_null(TEXT), "has_more": FLAG}
_MOMENTS = {
    f"{state}_at": or_null(COUNT) for state in BatchState.values if state != BatchState.VALIDATING
}
_ERROR = shape({"code": TEXT, "line": or_null(COUNT), "message": TEXT, "param": or_null(TEXT)})

COMPONENTS: dict[str, Schema] = {
    "File": shape(
        {
            "id": TEXT,
            "object": one_of("file"),
            "bytes": COUNT,
            "created_at": COUNT,
            "expires_at": COUNT,
            "filename": TEXT,
            "purpose": one_of(*Purpose.values),
            "status": one_of("processed"),
            "status_details": or_null(TEXT),
            "sha256": TEXT,
        }
    ),
    "FileList": shape({"object": one_of("list"), "data": list_of(ref("File"))} | _PAGE),
    "DeletedFile": shape({"id": TEXT, "object": one_of("file"), "deleted": FLAG}),
    "Batch": shape(
        {
            "id": TEXT,
            "object": one_of("batch"),
            "endpoint": one_of(*ENDPOINTS),
            "model": or_null(TEXT),
            "errors": or_null(shape({"object": one_of("list"), "data": list_of(_ERROR)})),
            "input_file_id": TEXT,
            "completion_window": one_of("24h"),
            "status": one_of(*BatchState.values),
            "output_file_id": or_null(TEXT),
            "error_file_id": or_null(TEXT),
            "created_at": COUNT,
            "expires_at": COUNT,
            **_MOMENTS,
            "request_counts": shape({"total": COUNT, "completed": COUNT, "failed": COUNT}),
            "usage": shape(
                {
                    "input_tokens": COUNT,
                    "input_tokens_details": shape({"cached_tokens": COUNT}),
                    "output_tokens": COUNT,
                    "output_tokens_details": shape({"reasoning_tokens": COUNT}),
                    "total_tokens": COUNT,
                }
            ),
            "metadata": map_of(TEXT),
        }
    ),
    "BatchList": shape({"object": one_of("list"), "data": list_of(ref("Batch"))} | _PAGE),
}
