"""Refuses searches of lists that databases fail over."""

from collections.abc import Sequence
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBadRequest, HttpResponseBase
from django.urls import URLPattern, URLResolver

from llamero.console.access import View

# Each word is a condition, and SQLite takes a thousand: so many characters are half of them.
MAX_LENGTH = 1000
# What the admin's lists, and its boxes that search, call what is searched for.
_NAMES = ("q", "term")
Patterns = Sequence[URLPattern | URLResolver]


def with_checked_searches(site: tuple[Patterns, str, str]) -> tuple[Patterns, str, str]:
    """Have all pages of a site answer 400 to searches that they would fail over.

    Such are too long, or have a character that PostgreSQL does not take. Here and not in a
    middleware, which all other pages would pass as well.
    """
    _check(site[0])
    return site


def _check(patterns: Patterns) -> None:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            _check(pattern.url_patterns)
        else:
            pattern.callback = _checked(pattern.callback)


def _checked(view: View) -> View:
    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return _refuse(request) or view(request, *args, **kwargs)

    return checked


def _refuse(request: HttpRequest) -> HttpResponseBase | None:
    for name in _NAMES:
        text = request.GET.get(name, "")
        if len(text) > MAX_LENGTH or "\0" in text:
            words = f"{name} must have at most {MAX_LENGTH} characters, none of them empty (NUL)."
            return HttpResponseBadRequest(words, content_type="text/plain")
    return None
