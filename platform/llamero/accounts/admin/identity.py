"""Who is who at identity providers, in the admin: to see, and to forget."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from llamero.accounts.models import Identity


@admin.register(Identity)
class IdentityAdmin(ModelAdmin):  # type: ignore[misc]
    """Made when a subject is first seen. One that is deleted is settled by name once more."""

    list_display = ("user", "issuer", "subject", "created_at")
    list_filter = ("issuer",)
    list_select_related = ("user",)
    search_fields = ("user__username", "subject")
    fields = readonly_fields = ("user", "issuer", "subject", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: the provider says who there is."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody: else one user could be made another."""
        return False
