"""Models on their way: imports and the files of each."""

from llamero.api.openapi.shapes import (
    COUNT,
    FLAG,
    TEXT,
    Schema,
    list_of,
    one_of,
    or_null,
    ref,
    shape,
)
from models_registry.models import ImportState, UploadState

COMPONENTS: dict[str, Schema] = {
    "ModelUpload": shape(
        {
            "id": TEXT,
            "object": one_of("model.upload"),
            "import": TEXT,
            "filename": TEXT,
            "bytes": or_null(COUNT),
            "received": COUNT,
            "status": one_of(*UploadState.values),
            "code": or_null(TEXT),
            "reason": or_null(TEXT),
            "sha256": or_null(TEXT),
            "was_here": FLAG,
            "source": or_null(TEXT),
            "part": one_of("weights", "lora", "mmproj", None),
            "architecture": or_null(TEXT),
            "shard": or_null(COUNT),
            "num_shards": or_null(COUNT),
        }
    ),
    "ModelUploadSize": shape({"object": one_of("model.upload.size"), "may_be_here": FLAG}),
    "ModelImport": shape(
        {
            "id": TEXT,
            "object": one_of("model.import"),
            "status": one_of(*ImportState.values),
            "reason": or_null(TEXT),
            "model": or_null(TEXT),
            "version": or_null(COUNT),
            "version_status": or_null(TEXT),
            "created_at": COUNT,
            "expires_at": COUNT,
            "files": list_of(ref("ModelUpload")),
        }
    ),
    "ModelImportList": shape({"object": one_of("list"), "data": list_of(ref("ModelImport"))}),
}
SOURCES = list_of(
    shape(
        {},
        {
            "url": TEXT,
            "filename": TEXT,
            "sha256": TEXT,
            "repository": TEXT,
            "file": TEXT,
            "revision": TEXT,
        },
    )
)
