"""What the sign-in page shows beside its form."""

from typing import Any
from urllib.parse import urlencode

from django import template
from django.conf import settings
from django.urls import reverse

register = template.Library()


@register.simple_tag
def sign_in_name() -> str:
    """Give how the identity provider is called; empty where there is none."""
    return settings.SIGN_IN.name if settings.SIGN_IN.is_on else ""


@register.simple_tag(takes_context=True)
def sign_in_address(context: dict[str, Any], target: str = "") -> str:
    """Give where the way to the provider begins.

    It leads on to where this page was asked to go on to, else to a target.
    """
    request = context["request"]
    target = request.POST.get("next") or request.GET.get("next") or target
    query = f"?{urlencode({'next': target})}" if target else ""
    return reverse("sign-in") + query
