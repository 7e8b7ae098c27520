"""Django's ASGI handler for API requests, with the few middlewares an API needs.

Sessions, messages and the like would cost a dozen thread hops a request, and a synchronous
middleware holds a thread for as long as an answer takes.
"""

from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response
from django.utils.module_loading import import_string

from llamero.api.paths import is_api_path


class ApiHandler(ASGIHandler):
    """Runs ``settings.API_MIDDLEWARE``, all of it asynchronous, instead of ``MIDDLEWARE``."""

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


class PathSwitch:
    """Hands API paths to one ASGI application and everything else to another."""

    def __init__(self, *, api: Any, site: Any) -> None:
        self._api = api
        self._site = site

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one request."""
        application = self._api if is_api_path(scope["path"]) else self._site
        await application(scope, receive, send)
