"""The admin's home page: which models answer, how busy they are, and what needs attention."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from llamero.console.access import may_see_overview, staff_only
from llamero.console.attention import list_concerns
from llamero.console.history import history_context
from llamero.console.overview import Overview, read_overview
from llamero.console.recent_changes import list_recent_changes


def add_overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what the home page shows to its context (called by the admin theme)."""
    recent = {"recent_changes": list_recent_changes(request.user)}
    return context | {"title": "Overview"} | _read(request) | history_context(request) | recent


@require_safe
@never_cache
@staff_only
def show_overview(request: HttpRequest) -> HttpResponse:
    """Give the live part of the home page alone, for when more than numbers has changed."""
    return render(request, "console/overview.html", _read(request))


def _read(request: HttpRequest) -> dict[str, Any]:
    is_visible = may_see_overview(request.user)
    overview = read_overview() if is_visible else Overview()
    return {
        "overview": overview,
        "is_overview_visible": is_visible,
        "concerns": list_concerns(request.user, overview),
    }
