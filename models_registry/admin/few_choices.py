"""A filter of lists by rows of another table."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

MAX_CHOICES = 200


class FewChoicesFilter(admin.RelatedFieldListFilter):
    """Offers those rows while they are few. Of thousands a page would be megabytes: search then."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        """List them, or none."""
        choices = super().field_choices(field, request, model_admin)
        return choices if len(choices) <= MAX_CHOICES else []
