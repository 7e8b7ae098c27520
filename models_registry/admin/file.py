"""Stored blobs in the admin: looked at, never edited."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display

from models_registry.models import ModelFile
from models_registry.sizes import filesizeformat


@admin.register(ModelFile)
class ModelFileAdmin(ModelAdmin):  # type: ignore[misc]
    """Files come by import and go with their last version."""

    list_display = ("sha256", "size", "num_uses", "created_at")
    search_fields = ("sha256", "uses__display_name")
    fields = readonly_fields = ("sha256", "size", "num_uses", "names", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelFile]:
        """Count the versions of each file along the way."""
        files: QuerySet[ModelFile] = super().get_queryset(request)
        return files.annotate(use_count=Count("uses"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Leave adding to imports."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Keep what is content-addressed as it is."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Leave deleting to the last version."""
        return False

    @display(description="Size", ordering="size_bytes")  # type: ignore[untyped-decorator]
    def size(self, file: ModelFile) -> str:
        """Show the size in the unit that fits."""
        return filesizeformat(file.size_bytes)

    @display(description="Versions")  # type: ignore[untyped-decorator]
    def num_uses(self, file: ModelFile) -> int:
        """Show how many versions share the file."""
        return int(file.use_count)  # type: ignore[attr-defined]

    @display(description="Names")  # type: ignore[untyped-decorator]
    def names(self, file: ModelFile) -> str:
        """Show under which names it came."""
        return ", ".join(sorted(set(file.uses.values_list("display_name", flat=True))))
