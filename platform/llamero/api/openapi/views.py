"""GET /openapi.json and /v1/openapi.json: the document, which says nothing that is secret."""

from functools import cache
from typing import Any

import msgspec
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.api.async_view import AsyncAPIView
from llamero.api.threads import run_in_thread


class OpenApiView(AsyncAPIView):
    """Gives the document to whoever asks."""

    authentication_classes = ()
    permission_classes = ()

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Give it; the first request has it made, in a thread."""
        return HttpResponse(await run_in_thread(write_document), content_type="application/json")


@cache
def write_document() -> bytes:
    """Make the document, once in a process: routes and fields do not change while it runs."""
    # Half a second of imports that no other request needs.
    from llamero.api.openapi.generator import ApiGenerator

    return msgspec.json.encode(ApiGenerator(urlconf="llamero.api.urls").get_schema())
