"""Versions in the admin: what was found in the files, and which version is served."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from inference.protocol.replicas import ModelKind
from models_registry.admin.confirmed import ConfirmedSteps, Step
from models_registry.admin.labels import show_state
from models_registry.admin.model_page import describe_version
from models_registry.admin.removal import remove_files_after_commit
from models_registry.admin.version_steps import list_version_steps
from models_registry.models import ModelVersion, VersionState
from models_registry.models.version import UNDER_WAY
from models_registry.services.versions import make_current

REFRESH_SECONDS = 2


@admin.register(ModelVersion)
class ModelVersionAdmin(ConfirmedSteps, ModelAdmin):  # type: ignore[misc]
    """Versions are made by imports; here one is chosen or deleted."""

    list_display = ("name", "state_label", "is_current", "quantization", "reason", "created_at")
    list_filter = ("state", "is_current", "model__kind")
    list_filter_submit = True
    list_per_page = 50
    show_full_result_count = False
    list_select_related = ("model",)
    search_fields = ("model__slug", "model__title", "reason", "files__file__sha256")
    fields = readonly_fields = (
        "model",
        "number",
        "state_label",
        "reason",
        "is_current",
        "created_at",
    )
    actions = ("make_current",)
    change_form_outer_before_template = "models_registry/version_top.html"

    class Media:
        css = {"all": ("models_registry/pages.css",)}  # noqa: RUF012 - Django's own declaration
        js = ("models_registry/live_part.js",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ModelVersion], search_term: str
    ) -> tuple[QuerySet[ModelVersion], bool]:
        """Find versions; a box that asks for drafts is told of those that can guess."""
        if request.GET.get("field_name") == "draft_version":
            kinds = (ModelKind.CHAT, ModelKind.COMPLETION)
            queryset = queryset.filter(state=VersionState.READY, model__kind__in=kinds)
        found: tuple[QuerySet[ModelVersion], bool]
        found = super().get_search_results(request, queryset, search_term)
        return found

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Leave adding to imports."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Show versions without offering to save them: they are immutable."""
        return False

    def has_serve_permission(self, request: HttpRequest) -> bool:
        """Let those choose the served version who may change versions."""
        return request.user.has_perm("models_registry.change_modelversion")

    def list_steps(self, obj: ModelVersion) -> list[Step]:
        """Give what can be done with it now."""
        return list_version_steps(obj)

    def may_take_steps(self, request: HttpRequest, obj: Any) -> bool:
        """Let those choose the served version who may."""
        return self.has_serve_permission(request)

    def _url_of(self, obj: Any) -> str:
        """Go back to the model: there the versions are side by side."""
        return reverse("admin:models_registry_model_change", args=[obj.model_id])

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a version; the page renews itself while an import is under way."""
        context = extra_context or {}
        version = self.get_object(request, object_id)
        if version is not None and self.has_view_permission(request, version):
            may_serve = self.has_serve_permission(request)
            steps = list_version_steps(version) if may_serve else []
            facts = describe_version(version, ModelKind(version.model.kind))
            context |= {"steps": steps, **facts}
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
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
