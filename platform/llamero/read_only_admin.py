"""Pages of the admin on which nothing can be made, changed or deleted."""

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]
    """Shows what is written elsewhere, to those who may see it."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Let none be made by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let none be changed."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let none be deleted."""
        return False
