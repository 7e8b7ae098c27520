"""The API's reference: a page on which requests can be tried, made from /openapi.json."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from llamero.console.access import STRICT_POLICY

# The page's icons are data in its style sheet.
_POLICY = STRICT_POLICY.replace("img-src 'self'", "img-src 'self' data:")


@require_safe
def show_reference(request: HttpRequest) -> HttpResponse:
    """Show the page; whoever wants to send a request enters a key, which stays in the browser."""
    response = render(request, "console/reference.html")
    response.headers["Content-Security-Policy"] = _POLICY
    return response
