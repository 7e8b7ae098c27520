"""Versions in the admin: what was found in the files, and which version is served."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import action, display

from models_registry.admin.labels import show_facts, show_state
from models_registry.admin.removal import remove_files_after_commit
from models_registry.models import ModelVersion, VersionFile
from models_registry.models.version import UNDER_WAY
from models_registry.services.versions import make_current

REFRESH_SECONDS = 2


class VersionFileInline(TabularInline):  # type: ignore[misc]
    """The files of a version, with the hashes that name them."""

    model = VersionFile
    extra = 0
    fields = readonly_fields = ("role", "position", "display_name", "sha256", "size")
    can_delete = False
    verbose_name_plural = "files"

    def get_queryset(self, request: HttpRequest) -> QuerySet[VersionFile]:
        """Take the blobs along."""
        uses: QuerySet[VersionFile] = super().get_queryset(request)
        return uses.select_related("file")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Leave adding to imports."""
        return False

    @display(description="SHA-256")  # type: ignore[untyped-decorator]
    def sha256(self, use: VersionFile) -> str:
        """Show the whole hash, to be compared."""
        return str(use.file.sha256)

    @display(description="Size")  # type: ignore[untyped-decorator]
    def size(self, use: VersionFile) -> str:
        """Show the size in the unit that fits."""
        return filesizeformat(use.file.size_bytes)


@admin.register(ModelVersion)
class ModelVersionAdmin(ModelAdmin):  # type: ignore[misc]
    """Versions are made by imports; here one is chosen or deleted."""

    list_display = ("name", "state_label", "is_current", "quantization", "reason", "created_at")
    list_filter = ("state", "is_current", "model")
    list_select_related = ("model",)
    search_fields = ("model__slug", "model__title")
    fields = readonly_fields = (
        "model",
        "number",
        "state_label",
        "reason",
        "is_current",
        "facts_shown",
        "created_at",
    )
    inlines = (VersionFileInline,)
    actions = ("make_current",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Leave adding to imports."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Show versions without offering to save them: they are immutable."""
        return False

    def has_serve_permission(self, request: HttpRequest) -> bool:
        """Let those choose the served version who may change versions."""
        return request.user.has_perm("models_registry.change_modelversion")

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a version; the page renews itself while an import is under way."""
        response: HttpResponse = super().change_view(request, object_id, form_url, extra_context)
        if ModelVersion.objects.filter(pk=_as_pk(object_id), state__in=UNDER_WAY).exists():
            response["Refresh"] = str(REFRESH_SECONDS)
        return response

    def delete_model(self, request: HttpRequest, obj: ModelVersion) -> None:
        """Delete one version, and its files if they were the last."""
        super().delete_model(request, obj)
        remove_files_after_commit()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ModelVersion]) -> None:
        """Delete the chosen versions, and the files that no other version uses."""
        super().delete_queryset(request, queryset)
        remove_files_after_commit()

    @display(description="Version", ordering="model__slug")  # type: ignore[untyped-decorator]
    def name(self, version: ModelVersion) -> str:
        """Name the version."""
        return str(version)

    @display(description="State")  # type: ignore[untyped-decorator]
    def state_label(self, version: ModelVersion) -> SafeString:
        """Show how far it has come."""
        return show_state(version)

    @display(description="Quantization")  # type: ignore[untyped-decorator]
    def quantization(self, version: ModelVersion) -> str:
        """Show how it is quantized."""
        return str(version.facts.get("quantization", ""))

    @display(description="In the file")  # type: ignore[untyped-decorator]
    def facts_shown(self, version: ModelVersion) -> SafeString:
        """Show what the header says."""
        return show_facts(version)

    @action(description="Serve this version", permissions=["serve"])  # type: ignore[untyped-decorator]
    def make_current(self, request: HttpRequest, versions: QuerySet[ModelVersion]) -> None:
        """Make the chosen version the current one of its model."""
        for version in versions:
            try:
                make_current(version=version)
                self.log_change(request, version, "Made current.")
                self.message_user(request, f"{version} is served now.", messages.SUCCESS)
            except ValidationError as error:
                self.message_user(request, f"{version}: {error.messages[0]}", messages.ERROR)


def _as_pk(text: str) -> int:
    return int(text) if text.isdecimal() else 0
