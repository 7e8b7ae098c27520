"""Models in the admin: what they are, what they need, where they run; and the way to new ones."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display

from models_registry.admin.confirmed import ConfirmedSteps, Step
from models_registry.admin.fetch_pages import FetchPage, HubPage
from models_registry.admin.import_page import ImportPage
from models_registry.admin.labels import show_label
from models_registry.admin.model_filters import HasDeployment, HasVersion
from models_registry.admin.model_form import ModelForm
from models_registry.admin.model_page import describe_model
from models_registry.admin.removal import remove_files_after_commit
from models_registry.admin.search_box import SearchBoxes
from models_registry.admin.upload_page import UploadPage
from models_registry.admin.version_steps import list_model_steps
from models_registry.models import Model, ModelAlias


class AliasInline(TabularInline):  # type: ignore[misc]
    """Other names of a model."""

    model = ModelAlias
    extra = 0


@admin.register(Model)
class ModelModelAdmin(ConfirmedSteps, SearchBoxes, ModelAdmin):  # type: ignore[misc]
    """Models come by upload and import; “add” leads there."""

    form = ModelForm

    list_display = ("slug", "title", "kind", "current", "deployments_shown", "created_at")
    list_filter = ("kind", HasVersion, HasDeployment)
    list_filter_submit = True
    list_per_page = 50
    show_full_result_count = False
    search_fields = ("slug", "title", "aliases__name", "description")
    fieldsets = (
        (None, {"fields": (("slug", "title"), ("kind", "owned_by"), "fallback", "description")}),
    )
    autocomplete_fields = ("fallback",)
    inlines = (AliasInline,)
    change_form_outer_before_template = "models_registry/model_top.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Take versions and deployments along."""
        models: QuerySet[Model] = super().get_queryset(request)
        return models.prefetch_related("versions", "deployments")

    def list_steps(self, obj: Model) -> list[Step]:
        """Give what can be done with it now."""
        return list_model_steps(obj)

    def may_take_steps(self, request: HttpRequest, obj: Any) -> bool:
        """Let those roll back who may choose the served version."""
        return bool(request.user.has_perm("models_registry.change_modelversion"))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show what it is above the form."""
        context = extra_context or {}
        model = self.get_object(request, object_id)
        if model is not None and self.has_view_permission(request, model):
            may_change = self.may_take_steps(request, model)
            context |= describe_model(model, may_change=may_change)
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

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
