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
def sign_in_address(context: dict[str, Any]) -> str:
    """Give where the way to the provider begins, for who wants to go on as this page was asked."""
    request = context["request"]
    target = request.POST.get("next") or request.GET.get("next")
    query = f"?{urlencode({'next': target})}" if target else ""
    return reverse("sign-in") + query
