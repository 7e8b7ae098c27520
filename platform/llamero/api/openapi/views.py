"""GET /openapi.json and /v1/openapi.json: the document, which says nothing that is secret."""

import gzip
from functools import cache
from typing import Any

import msgspec
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from rest_framework.request import Request

from llamero.api.async_view import AsyncAPIView
from llamero.api.threads import run_in_thread


class OpenApiView(AsyncAPIView):
    """Gives the document to whoever asks."""

    authentication_classes = ()
    permission_classes = ()

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Give it; the first request has it made, in a thread. A tenth of it goes over the line."""
        is_packed = "gzip" in request.headers.get("Accept-Encoding", "")
        document = await run_in_thread(pack_document if is_packed else write_document)
        response = HttpResponse(document, content_type="application/json")
        if is_packed:
            response["Content-Encoding"] = "gzip"
        patch_vary_headers(response, ["Accept-Encoding"])
        return response


@cache
def pack_document() -> bytes:
    """Pack the document."""
    return gzip.compress(write_document())


@cache
def write_document() -> bytes:
    """Make the document, once in a process: routes and fields do not change while it runs."""
    # Half a second of imports that no other request needs.
    from llamero.api.openapi.generator import ApiGenerator

    return msgspec.json.encode(ApiGenerator(urlconf="llamero.api.urls").get_schema())
