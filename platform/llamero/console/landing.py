"""The front page: where the API is, and where people go from here."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from llamero.console.access import strict_page


@require_safe
@strict_page
def show_landing(request: HttpRequest) -> HttpResponse:
    """Show the API's base URL and the ways in; strangers may turn out to be of the staff."""
    context = {
        "base_url": request.build_absolute_uri("/v1"),
        "is_for_staff": not request.user.is_authenticated or request.user.is_staff,
    }
    return render(request, "console/landing.html", context)
