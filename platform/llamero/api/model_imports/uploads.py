"""/v1/model-uploads: files of models, sent in pieces by tus."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import Caller
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.model_imports import tus
from llamero.api.model_imports.callers import KeyOrSession, owner_of, sees_files
from llamero.api.model_imports.documents import describe_upload
from llamero.api.model_imports.lookup import check_model, find_import, find_upload
from llamero.api.model_imports.refusals import OffsetMismatch, refusing
from llamero.api.threads import run_in_thread
from llamero.errors import InvalidValue
from models_registry.incoming.assembling import wish_import
from models_registry.incoming.receiving import (
    begin_upload,
    check_open,
    is_size_known,
    note_sha256,
    receive_chunk,
    remove_upload,
)
from models_registry.models import ModelImport, Upload, UploadState
from models_registry.tasks import go_on, hand_on

_WORDS_FOR_YES = ("true", "1", "yes")
# Apart from those of requests: a slow disk must hold up no answer to a client.
upload_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="uploads")


class TusView(AsyncAPIView):
    """A view whose answers, errors too, say which tus this is, and where an upload stands."""

    authentication_classes = (KeyOrSession,)
    scope = Scope.UPLOAD
    threads = upload_threads

    async def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """Serve one request."""
        response = await super().dispatch(request, *args, **kwargs)
        response["Tus-Resumable"] = tus.VERSION
        response["Cache-Control"] = "no-store"
        if response.status_code == 412:
            tus.describe_server(response)
        return response

    def handle_exception(self, exc: Exception) -> Any:
        """Answer for what was raised."""
        response = super().handle_exception(exc)
        if isinstance(exc, OffsetMismatch):
            response["Upload-Offset"] = str(exc.offset)
        return response

    async def options(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        """Say what this server can do; needs no key."""
        response = HttpResponse(status=204)
        tus.describe_server(response)
        return response


class UploadsView(TusView):
    """Begin an upload."""

    def prepare(self, request: Request) -> None:
        """Read what is said of the file."""
        if request.method == "POST":
            tus.check_version(request._request)
            self.new = tus.read_creation(request._request)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Make room for a file, unless it is here already."""
        upload = await run_in_thread(partial(_begin, self.new, caller_of(request)), upload_threads)
        response = HttpResponse(status=201)
        response["Location"] = f"/v1/model-uploads/{upload.id}"
        response["Llamero-Import"] = upload.model_import_id
        tus.describe_offset(response, upload, upload.num_received)
        return response

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Tell whether a file of some size may be here: then it is worth hashing before sending."""
        text = request.query_params.get("size", "")
        if not (text.isascii() and text.isdecimal() and len(text) <= 16):
            raise InvalidValue("size", "size must be a number of bytes.")
        ask = partial(_may_be_here, int(text), caller_of(request))
        is_known = await run_in_thread(ask, upload_threads)
        return json_response({"object": "model.upload.size", "may_be_here": is_known})


class UploadView(TusView):
    """One upload."""

    def prepare(self, request: Request) -> None:
        """Find it."""
        if request.method in ("HEAD", "PATCH", "DELETE"):
            tus.check_version(request._request)
        self.upload = find_upload(self.kwargs["upload_id"], caller_of(request))
        if request.method == "PATCH":
            self.chunk = tus.read_chunk(request._request)
            self.sha256 = tus.read_sha256(request.headers.get(tus.SHA256_HEADER, ""))

    async def head(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Say where it stands."""
        offset = await run_in_thread(partial(_stand, self.upload), upload_threads)
        response = HttpResponse(status=200)
        if self.upload.size_bytes is not None:
            response["Upload-Length"] = str(self.upload.size_bytes)
        tus.describe_offset(response, self.upload, offset)
        return response

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Describe it."""
        return json_response(
            await run_in_thread(partial(describe_upload, self.upload), upload_threads)
        )

    async def patch(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Take a piece in."""
        offset = await run_in_thread(self._receive, upload_threads)
        response = HttpResponse(status=204)
        tus.describe_offset(response, self.upload, offset)
        return response

    async def delete(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Forget it."""
        with refusing():
            await run_in_thread(partial(remove_upload, self.upload), upload_threads)
        await run_in_thread(partial(go_on, self.upload.model_import), upload_threads)
        return HttpResponse(status=204)

    def _receive(self) -> int:
        with refusing():
            note_sha256(self.upload, self.sha256)
            offset = receive_chunk(self.upload, self.chunk)
        hand_on(self.upload)
        return offset


def _stand(upload: Upload) -> int:
    """Give where an upload stands; one that is whole, but was never handed on, is now."""
    if upload.state == UploadState.REFUSED:
        with refusing():
            check_open(upload)
    hand_on(upload)
    return upload.num_received


def _may_be_here(size_bytes: int, caller: Caller) -> bool:
    return is_size_known(size_bytes, owner=owner_of(caller), sees_files=sees_files(caller))


def _begin(new: tus.NewUpload, caller: Caller) -> Upload:
    metadata = new.metadata
    if metadata.get("model"):
        check_model(metadata["model"], caller)
    is_own = not metadata.get("import")
    if is_own:
        model_import = ModelImport.objects.create(owner=owner_of(caller))
    else:
        model_import = find_import(metadata["import"], caller)
    try:
        with refusing():
            upload = begin_upload(
                model_import=model_import,
                name=metadata.get("filename", ""),
                size_bytes=new.size_bytes,
                sha256=new.sha256,
                sees_files=sees_files(caller),
            )
            if metadata.get("model"):
                wish_import(model_import, _read_wish(metadata))
    except Exception:
        if is_own:
            model_import.delete()
        raise
    if upload.state == UploadState.COMPLETE:
        go_on(model_import)
    return upload


def _read_wish(metadata: Any) -> dict[str, object]:
    return {
        "model": metadata["model"],
        "title": metadata.get("title", ""),
        "kind": metadata.get("kind", ""),
        "is_new_version": metadata.get("new_version", "").lower() in _WORDS_FOR_YES,
        "is_deployed": metadata.get("deploy", "").lower() in _WORDS_FOR_YES,
    }
