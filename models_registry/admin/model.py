"""Models in the admin: names, aliases, versions, and the way to the import page."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display

from models_registry.admin.fetch_pages import FetchPage, HubPage
from models_registry.admin.import_page import ImportPage
from models_registry.admin.labels import show_label, show_state
from models_registry.admin.removal import remove_files_after_commit
from models_registry.admin.upload_page import UploadPage
from models_registry.models import Deployment, Model, ModelAlias, ModelVersion


class AliasInline(TabularInline):  # type: ignore[misc]
    """Other names of a model."""

    model = ModelAlias
    extra = 0


class VersionInline(TabularInline):  # type: ignore[misc]
    """The versions of a model, newest first."""

    model = ModelVersion
    extra = 0
    fields = readonly_fields = ("number", "state_label", "reason", "is_current", "created_at")
    ordering = ("-number",)
    can_delete = False
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Leave adding to imports."""
        return False

    @display(description="State")  # type: ignore[untyped-decorator]
    def state_label(self, version: ModelVersion) -> SafeString:
        """Show how far it has come."""
        return show_state(version)


class DeploymentInline(TabularInline):  # type: ignore[misc]
    """The deployments of a model, as they are."""

    model = Deployment
    extra = 0
    fields = readonly_fields = ("slug", "state_label", "reason", "enabled", "num_slots")
    can_delete = False
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Leave adding to the deployments' own page."""
        return False

    @display(description="State")  # type: ignore[untyped-decorator]
    def state_label(self, deployment: Deployment) -> SafeString:
        """Show how it is going."""
        return show_state(deployment)


@admin.register(Model)
class ModelModelAdmin(ModelAdmin):  # type: ignore[misc]
    """Models come by import; “add” leads there."""

    list_display = ("slug", "title", "kind", "current", "deployments_shown", "created_at")
    list_filter = ("kind",)
    search_fields = ("slug", "title", "aliases__name")
    fields = ("slug", "title", "kind", "description", "owned_by", "created_at")
    readonly_fields = ("created_at",)
    inlines = (AliasInline, VersionInline, DeploymentInline)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Take versions and deployments along."""
        models: QuerySet[Model] = super().get_queryset(request)
        return models.prefetch_related("versions", "deployments")

    def get_urls(self) -> list[URLPattern]:
        """Add the pages that bring models in."""
        pages: dict[str, Any] = {
            "upload": UploadPage,
            "hub": HubPage,
            "fetch": FetchPage,
            "import": ImportPage,
        }
        added = [
            path(
                f"{name}/",
                self.admin_site.admin_view(page.as_view(model_admin=self)),
                name=f"models_registry_model_{name}",
            )
            for name, page in pages.items()
        ]
        urls: list[URLPattern] = super().get_urls()
        return [*added, *urls]

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead to the upload page: a model begins with its files."""
        return HttpResponseRedirect(reverse("admin:models_registry_model_upload"))

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """Delete a model, and the files that no other model uses."""
        super().delete_model(request, obj)
        remove_files_after_commit()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Delete the chosen models, and the files that no other model uses."""
        super().delete_queryset(request, queryset)
        remove_files_after_commit()

    @display(description="Current version")  # type: ignore[untyped-decorator]
    def current(self, model: Model) -> SafeString:
        """Show the version that is served, or how far the newest has come."""
        versions = sorted(model.versions.all(), key=lambda one: (one.is_current, one.number))
        if not versions:
            return show_label("", "none")
        newest = versions[-1]
        return show_label(newest.state, f"v{newest.number} {newest.get_state_display()}")

    @display(description="Deployments")  # type: ignore[untyped-decorator]
    def deployments_shown(self, model: Model) -> SafeString:
        """Show how the first deployment is, and how many more there are."""
        deployments = list(model.deployments.all())
        if not deployments:
            return show_label("", "none")
        words = deployments[0].get_state_display()
        more = f" +{len(deployments) - 1}" if len(deployments) > 1 else ""
        return show_label(deployments[0].state, words + more)
