"""The ASGI application of API requests: Django's request handling without its thread hops.

Sessions, messages, signals and the like cost a dozen hops a request, a thread per open stream,
and a synchronous middleware holds a thread for as long as an answer takes. The API needs none.
"""

import asyncio
from os import SEEK_END
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix, set_urlconf
from django.utils.module_loading import import_string

from llamero.api.paths import UPLOAD_EXTENSION, is_api_path


class ApiHandler(ASGIHandler):
    """Runs ``settings.API_MIDDLEWARE``, all of it asynchronous, instead of ``MIDDLEWARE``.

    Views give their database connections back themselves; no request signal is sent. Django would
    log each refusal too, by a thread: the access log has them, and under overload they are many.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """Build the chain, outermost first in the setting."""
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        get_response: Any = self._get_response_async  # type: ignore[attr-defined]
        chain = convert_exception_to_response(get_response)
        for path in reversed(settings.API_MIDDLEWARE):
            chain = convert_exception_to_response(import_string(path)(chain))
        self._middleware_chain = chain

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Have a request answered."""
        set_urlconf(settings.ROOT_URLCONF)
        chain: Any = self._middleware_chain
        response: HttpResponseBase = await chain(request)
        response._resource_closers.append(request.close)  # type: ignore[attr-defined]
        return response

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request; the view is cancelled when the client leaves."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        upload = scope.get("extensions", {}).get(UPLOAD_EXTENSION)
        if upload is not None:
            body.close()
            body = upload["file"]
        with body:
            set_script_prefix(get_script_prefix(scope))
            request, refusal = self.create_request(scope, body)
            if request is not None:
                _note_length(request, body)
                await self._serve(request, receive, send)
            elif refusal is not None:
                await self.send_response(refusal, send)

    async def _serve(self, request: HttpRequest, receive: Any, send: Any) -> None:
        answering = asyncio.create_task(self._answer(request, send))
        leaving = asyncio.create_task(receive())
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            answering.cancel()
            outcomes = await asyncio.gather(answering, leaving, return_exceptions=True)
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]

    async def _answer(self, request: HttpRequest, send: Any) -> None:
        try:
            await self.send_response(await self.run_get_response(request), send)
        finally:
            request.close()


def _note_length(request: HttpRequest, body: IO[bytes]) -> None:
    """Tell how long a body is, whatever its head says, or if it says nothing: all of it is here."""
    request.META["CONTENT_LENGTH"] = str(body.seek(0, SEEK_END))
    body.seek(0)


class PathSwitch:
    """Hands API paths to one ASGI application and everything else to another."""

    def __init__(self, *, api: Any, site: Any) -> None:
        self._api = api
        self._site = site

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one request."""
        application = self._api if is_api_path(scope["path"]) else self._site
        await application(scope, receive, send)
