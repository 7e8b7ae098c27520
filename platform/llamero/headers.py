"""Security headers that Django does not set."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from django.http import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

# The admin theme runs Alpine, which evaluates expressions in attributes of the page, and styles
# elements in place. No page has a script in itself, so a text that got into one as HTML runs none.
PAGE_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


@sync_and_async_middleware
def content_security_policy(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Let pages load from this site alone."""

    def add(response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Content-Security-Policy", PAGE_POLICY)
        return response

    if iscoroutinefunction(get_response):

        async def async_middleware(request: Any) -> HttpResponseBase:
            return add(await get_response(request))

        return async_middleware

    def middleware(request: Any) -> HttpResponseBase:
        return add(get_response(request))

    return middleware
