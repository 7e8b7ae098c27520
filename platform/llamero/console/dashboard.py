"""The admin's home page: which models answer, and how busy they are."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from llamero.console.access import staff_only
from llamero.console.deployments import read_overview


def add_overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what the home page shows to its context (called by the admin theme)."""
    return context | {"overview": read_overview()}


@require_safe
@never_cache
@staff_only
def show_overview(request: HttpRequest) -> HttpResponse:
    """Give the live part of the home page alone; the page fetches it every few seconds."""
    return render(request, "console/overview.html", {"overview": read_overview()})
