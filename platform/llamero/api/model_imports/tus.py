"""The words of tus 1.0, a protocol for uploads that can be resumed: https://tus.io."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.http import http_date

from llamero.api.model_imports.documents import expiry_of
from llamero.errors import InvalidValue, LlameroError
from models_registry.incoming.receiving import Chunk, is_sha256
from models_registry.models import Upload

VERSION = "1.0.0"
EXTENSIONS = "creation,checksum,termination,expiration"
CHUNK_TYPE = "application/offset+octet-stream"
# What files should hash to may be said at their end, when a client knows it.
SHA256_HEADER = "Upload-Sha256"
_ALGORITHMS = {"sha256": 32, "sha1": 20}
_MAX_METADATA = 8192
_MAX_DIGITS = 16


@dataclass(frozen=True, slots=True)
class NewUpload:
    """What a client says of a file before it sends any of it."""

    size_bytes: int
    metadata: Mapping[str, str]

    @property
    def sha256(self) -> str:
        """What the file should hash to; empty where that was not said."""
        return read_sha256(self.metadata.get("sha256", ""))


def check_version(request: HttpRequest) -> None:
    """Refuse who speaks another version, or no tus at all."""
    if request.headers.get("Tus-Resumable") != VERSION:
        message = f"Uploads are made by tus: send the header Tus-Resumable: {VERSION}."
        raise LlameroError(412, "tus_version", message, error_type="invalid_request_error")


def read_creation(request: HttpRequest) -> NewUpload:
    """Read how large a file will be, and what is said of it."""
    size_bytes = _read_count(request, "Upload-Length")
    if size_bytes == 0:
        raise InvalidValue("Upload-Length", "The file is empty.")
    return NewUpload(size_bytes, read_metadata(request.headers.get("Upload-Metadata", "")))


def read_chunk(request: HttpRequest) -> Chunk:
    """Read where a piece of a file belongs, and what it should hash to; its bytes come later."""
    if request.content_type != CHUNK_TYPE:
        message = f"Send pieces of files with Content-Type: {CHUNK_TYPE}."
        raise LlameroError(415, "unsupported_media_type", message)
    if request.headers.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
        message = "Send the bytes as they are, without a Content-Encoding."
        raise LlameroError(415, "unsupported_media_type", message)
    algorithm, digest = _read_checksum(request.headers.get("Upload-Checksum", ""))
    length = request.META.get("CONTENT_LENGTH") or "0"
    return Chunk(
        offset=_read_count(request, "Upload-Offset"),
        num_bytes=int(length) if length.isdecimal() else 0,
        content=request,
        algorithm=algorithm,
        digest=digest,
    )


def read_metadata(header: str) -> dict[str, str]:
    """Read pairs of a key and a value in base64; a key may stand alone."""
    if len(header) > _MAX_METADATA:
        raise InvalidValue("Upload-Metadata", f"Upload-Metadata is longer than {_MAX_METADATA}.")
    found: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in header.split(","))):
        key, _, value = pair.partition(" ")
        try:
            found[key] = base64.b64decode(value.strip(), validate=True).decode()
        except ValueError:
            message = f"Upload-Metadata: the value of {key!r:.60} is no UTF-8 text in base64."
            raise InvalidValue("Upload-Metadata", message) from None
        if "\0" in found[key]:
            raise InvalidValue("Upload-Metadata", f"Upload-Metadata: {key!r:.60} holds a NUL.")
    return found


def read_sha256(text: str) -> str:
    """Read a SHA-256, or nothing."""
    folded = text.strip().lower()
    if folded and not is_sha256(folded):
        raise InvalidValue("sha256", "sha256 must be 64 hexadecimal digits.")
    return folded


def describe_server(response: HttpResponseBase) -> None:
    """Say which tus this is."""
    response["Tus-Version"] = VERSION
    response["Tus-Extension"] = EXTENSIONS
    response["Tus-Max-Size"] = str(settings.MAX_MODEL_FILE_BYTES)
    response["Tus-Checksum-Algorithm"] = ",".join(_ALGORITHMS)


def describe_offset(response: HttpResponseBase, upload: Upload, offset: int) -> None:
    """Say where an upload stands, and until when it is kept."""
    response["Upload-Offset"] = str(offset)
    response["Upload-Expires"] = http_date(expiry_of(upload).timestamp())


def _read_count(request: HttpRequest, name: str) -> int:
    text = request.headers.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise InvalidValue(name, f"The header {name} must be a number of bytes.")
    return int(text)


def _read_checksum(header: str) -> tuple[str, bytes]:
    if not header:
        return "", b""
    algorithm, _, text = header.strip().partition(" ")
    try:
        digest = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        digest = b""
    if len(digest) != _ALGORITHMS.get(algorithm, -1):
        names = " or ".join(_ALGORITHMS)
        raise InvalidValue("Upload-Checksum", f"Upload-Checksum must be {names}, and base64.")
    return algorithm, digest
