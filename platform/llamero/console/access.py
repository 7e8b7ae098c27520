"""Who may see a page of ours, and what a page may load."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

View = Callable[..., HttpResponseBase]

STRICT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


def may_see_overview(user: Any) -> bool:
    """Whether somebody may see how deployments and nodes are doing."""
    is_staff = user.is_authenticated and user.is_active and user.is_staff
    return bool(is_staff and user.has_perm("models_registry.view_deployment"))


def strict_page(view: View) -> View:
    """Forbid the page inline scripts and styles, and everything from elsewhere."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response.headers["Content-Security-Policy"] = STRICT_POLICY
        return response

    return wrapped


def staff_only(view: View) -> View:
    """Send strangers to the login page, and refuse users who are not of the staff."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path(), reverse("admin:login"))
        if not (request.user.is_active and request.user.is_staff):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return wrapped


def may_see(permission: str) -> Callable[[View], View]:
    """Refuse members of the staff without a permission."""

    def decorate(view: View) -> View:
        @wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.has_perm(permission):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return wrapped

    return decorate
