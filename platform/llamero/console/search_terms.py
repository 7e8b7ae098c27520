"""Refuses searches of lists that databases fail over."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from django.http import HttpRequest, HttpResponseBadRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

# Each word is a condition, and SQLite takes a thousand: so many characters are half of them.
MAX_LENGTH = 1000
# What the admin's lists, and its boxes that search, call what is searched for.
_NAMES = ("q", "term")


@sync_and_async_middleware
def check_search(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Answer 400 to a search that is too long, or has a character that PostgreSQL does not take."""
    if iscoroutinefunction(get_response):

        async def async_middleware(request: HttpRequest) -> HttpResponseBase:
            refusal = _refuse(request)
            answer: HttpResponseBase = refusal or await get_response(request)
            return answer

        return async_middleware

    def middleware(request: HttpRequest) -> HttpResponseBase:
        answer: HttpResponseBase = _refuse(request) or get_response(request)
        return answer

    return middleware


def _refuse(request: HttpRequest) -> HttpResponseBase | None:
    if not request.path.startswith("/admin/"):
        return None
    for name in _NAMES:
        text = request.GET.get(name, "")
        if len(text) > MAX_LENGTH or "\0" in text:
            words = f"{name} must have at most {MAX_LENGTH} characters, none of them empty (NUL)."
            return HttpResponseBadRequest(words, content_type="text/plain")
    return None
