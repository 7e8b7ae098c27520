"""Stored responses in the admin: that they are there, and how they ended; never what they say."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import display

from llamero.conversations.models import ResponseState, StoredResponse
from models_registry.admin.few_choices import FewChoicesFilter
from models_registry.admin.labels import draw_label

_COLOURS: dict[str, str] = {
    ResponseState.IN_PROGRESS: "info",
    ResponseState.COMPLETED: "success",
    ResponseState.INCOMPLETE: "warning",
    ResponseState.FAILED: "danger",
    ResponseState.CANCELLED: "",
}


@admin.register(StoredResponse)
class StoredResponseAdmin(ModelAdmin):  # type: ignore[misc]
    """Staff may delete what was stored, and read none of it."""

    list_display = ("id", "state_label", "model", "api_key", "is_background", "created_at")
    list_filter = ("state", "is_background", ("model", FewChoicesFilter))
    search_fields = ("id", "model__slug", "api_key__name", "api_key__prefix")
    list_select_related = ("model", "api_key")
    fields = (
        "id",
        "state_label",
        "model",
        "api_key",
        "previous",
        "is_background",
        "created_at",
        "ended_at",
        "used_at",
    )
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Let none be made by hand."""
        return False

    def get_queryset(self, request: HttpRequest) -> Any:
        """Leave the contents in the database."""
        return super().get_queryset(request).defer("question", "outcome")

    @display(description="State")  # type: ignore[untyped-decorator]
    def state_label(self, response: StoredResponse) -> SafeString:
        """Show what became of it."""
        return draw_label(_COLOURS.get(response.state, ""), response.get_state_display())
