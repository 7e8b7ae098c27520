"""Upload quotas of single users in the admin."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display

from models_registry.admin.search_box import SearchBoxes
from models_registry.admin.size_field import SizeField
from models_registry.incoming.room import bytes_of
from models_registry.models import UploadQuota
from models_registry.sizes import filesizeformat


@admin.register(UploadQuota)
class UploadQuotaAdmin(SearchBoxes, ModelAdmin):  # type: ignore[misc]
    """Who may fill more of the store, or less, than everybody else."""

    list_display = ("user", "allowed", "updated_at")
    list_select_related = ("user",)
    list_per_page = 50
    search_fields = ("user__username",)
    fields = ("user", "max_bytes", "taken")
    readonly_fields = ("taken",)
    autocomplete_fields = ("user",)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Take the size with its unit."""
        if db_field.name == "max_bytes":
            return db_field.formfield(form_class=SizeField)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Leave a quota with whose it is."""
        return ("user", *self.readonly_fields) if obj else self.readonly_fields

    @display(description="Room for files", ordering="max_bytes")  # type: ignore[untyped-decorator]
    def allowed(self, quota: UploadQuota) -> str:
        """Show how much."""
        return filesizeformat(quota.max_bytes) if quota.max_bytes else "any amount"

    @display(description="Taken")  # type: ignore[untyped-decorator]
    def taken(self, quota: UploadQuota) -> str:
        """Show how much of it is filled."""
        return filesizeformat(bytes_of(f"user:{quota.user_id}")) if quota.pk else "-"
