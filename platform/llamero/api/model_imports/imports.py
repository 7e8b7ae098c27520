"""/v1/model-imports: what files become together, and files that the server fetches itself."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.replicas import ModelKind
from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import Caller
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.fields import AnyValue, RequestSerializer, StrictBoolean, StrictString, validate
from llamero.api.json_body import read_json_object
from llamero.api.model_imports.callers import KeyOrSession, is_operator, owner_of, sees_files
from llamero.api.model_imports.documents import describe_import
from llamero.api.model_imports.lookup import check_model, find_import
from llamero.api.model_imports.refusals import refusing
from llamero.api.model_imports.sources import read_sources
from llamero.api.model_imports.uploads import upload_threads
from llamero.api.threads import run_in_thread
from models_registry.incoming.assembling import wish_import
from models_registry.incoming.receiving import remove_import
from models_registry.incoming.sources import FetchedFile, add_fetched_files
from models_registry.models import ModelImport
from models_registry.names import MAX_NAME_LENGTH
from models_registry.tasks import ask_for_fetch, go_on

MAX_LISTED = 100
# Apart, and few: a hub that does not answer must hold up neither requests nor uploads.
import_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="imports")


class ImportSerializer(RequestSerializer):
    """What the files are to become; without ``model`` that is said later."""

    model = StrictString(max_length=MAX_NAME_LENGTH, required=False)
    title = StrictString(max_length=200, required=False)
    kind = StrictString(choices=tuple(kind.value for kind in ModelKind), required=False)
    new_version = StrictBoolean(required=False)
    deploy = StrictBoolean(required=False)
    sources = AnyValue(required=False)


class ImportsView(AsyncAPIView):
    """Begin an import, or list them."""

    authentication_classes = (KeyOrSession,)
    scope = Scope.UPLOAD
    serializer_class = ImportSerializer
    threads = import_threads

    def prepare(self, request: Request) -> None:
        """Validate the body; repositories are asked what they have."""
        if request.method != "POST":
            return
        self.fields = validate(ImportSerializer, read_json_object(request._request))
        with refusing():
            self.sources = read_sources(self.fields.get("sources", []))

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Begin it."""
        begin = partial(_begin, self.fields, self.sources, caller_of(request))
        return json_response(await run_in_thread(begin, upload_threads))

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """List the newest."""
        data = await run_in_thread(partial(_list, caller_of(request)), upload_threads)
        return json_response({"object": "list", "data": data})


class ImportView(AsyncAPIView):
    """One import."""

    authentication_classes = (KeyOrSession,)
    scope = Scope.UPLOAD
    serializer_class = ImportSerializer
    threads = import_threads

    def prepare(self, request: Request) -> None:
        """Find it."""
        self.found = find_import(self.kwargs["import_id"], caller_of(request))
        if request.method == "POST":
            self.fields = validate(ImportSerializer, read_json_object(request._request))
            with refusing():
                self.sources = read_sources(self.fields.get("sources", []))

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Tell how far it is."""
        return json_response(
            await run_in_thread(partial(describe_import, self.found), upload_threads)
        )

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Say what it is to become, and add files that are to be fetched."""
        go_on = partial(_extend, self.found, self.fields, self.sources, caller_of(request))
        return json_response(await run_in_thread(go_on, upload_threads))

    async def delete(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Take it back; what it has become stays."""
        with refusing():
            await run_in_thread(partial(remove_import, self.found), upload_threads)
        return HttpResponse(status=204)


def _begin(fields: dict[str, Any], sources: list[FetchedFile], caller: Caller) -> dict[str, Any]:
    model_import = ModelImport.objects.create(owner=owner_of(caller))
    try:
        return _extend(model_import, fields, sources, caller)
    except Exception:
        model_import.delete()
        raise


def _extend(
    model_import: ModelImport, fields: dict[str, Any], sources: list[FetchedFile], caller: Caller
) -> dict[str, Any]:
    with refusing():
        added = add_fetched_files(model_import, sources, sees_files=sees_files(caller))
        for upload in added:
            ask_for_fetch(upload.pk)
        if fields.get("model"):
            check_model(fields["model"], caller)
            wish_import(model_import, _read_wish(fields))
    go_on(model_import)
    model_import.refresh_from_db()
    return describe_import(model_import)


def _read_wish(fields: dict[str, Any]) -> dict[str, object]:
    return {
        "model": fields["model"],
        "title": fields.get("title", ""),
        "kind": fields.get("kind", ""),
        "is_new_version": fields.get("new_version", False),
        "is_deployed": fields.get("deploy", False),
    }


def _list(caller: Caller) -> list[dict[str, Any]]:
    imports = ModelImport.objects.select_related("version").prefetch_related("uploads")
    if not is_operator(caller):
        imports = imports.filter(owner=owner_of(caller))
    return [describe_import(one) for one in imports[:MAX_LISTED]]
