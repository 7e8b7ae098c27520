"""The base of every API view: one thread hop for what may block, the rest on the event loop."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import msgspec
from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from llamero.accounts.selectors import Caller

# Few: they hold the interpreter's lock most of the time, and each may hold a database connection.
_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="prepare")


class AnyAccept(BaseContentNegotiation):
    """Ignore Accept: the body's ``stream`` decides what comes back."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        """Take the first."""
        return parsers[0]

    def select_renderer(
        self, request: Any, renderers: Any, format_suffix: str | None = None
    ) -> Any:
        """Take the first."""
        return renderers[0], renderers[0].media_type


class AsyncAPIView(APIView):
    """A view whose handlers are coroutines.

    Order of a request: method (405), key (401), ``prepare`` (parse, validate, look up), handler.
    Key and ``prepare`` run in one thread, which gives its database connections back, so that an
    open stream holds none.
    """

    is_native: ClassVar[bool] = False
    content_negotiation_class = AnyAccept
    renderer_classes = (JSONRenderer,)

    def prepare(self, request: Request) -> None:
        """Do what blocks, before the handler: read the body, validate, look models up."""

    async def dispatch(  # type: ignore[override]
        self, request: Any, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Run one request; everything raised becomes the API's error document."""
        self.args, self.kwargs = args, kwargs
        self.request = request = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        response: HttpResponseBase
        try:
            handler = self._find_handler(request)
            if request.method != "OPTIONS":
                await sync_to_async(self._prepare, thread_sensitive=False, executor=_threads)(
                    request
                )
            response = await handler(request, *args, **kwargs)
        except Exception as error:
            response = self.handle_exception(error)
        self.response = self.finalize_response(request, response, *args, **kwargs)  # type: ignore[arg-type]
        return self.response

    async def options(  # type: ignore[override]
        self, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Name the methods; needs no key."""
        return HttpResponse(status=204)

    def _find_handler(self, request: Request) -> Any:
        method = str(request.method).lower()
        if method not in self.http_method_names:
            return self.http_method_not_allowed(request)
        return getattr(self, method, None) or self.http_method_not_allowed(request)

    def _prepare(self, request: Request) -> None:
        try:
            self.initial(request)
            self.prepare(request)
        finally:
            for connection in connections.all(initialized_only=True):
                if not connection.in_atomic_block:
                    connection.close()


def caller_of(request: Request) -> Caller:
    """Give who the request is from."""
    caller = request.auth
    assert isinstance(caller, Caller)
    return caller


def json_response(document: Any) -> HttpResponse:
    """Answer 200 with a JSON document."""
    return HttpResponse(msgspec.json.encode(document), content_type="application/json")
