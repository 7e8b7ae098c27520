"""Deployments in the admin: profile, state, memory, and the switches."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.defaultfilters import pluralize
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from inference.protocol.replicas import ModelKind
from models_registry.admin.adapter import AdapterInline
from models_registry.admin.confirmed import Step, StepsAboveForm
from models_registry.admin.deployment_fields import FIELDSETS, SEEN_FIELDSETS, open_where
from models_registry.admin.deployment_filters import NeedsAttention
from models_registry.admin.deployment_form import DeploymentForm
from models_registry.admin.deployment_steps import foretell_deletion, list_deployment_steps
from models_registry.admin.labels import show_state
from models_registry.admin.live_panel import PANELS, show_live
from models_registry.admin.memory_panel import show_memory
from models_registry.admin.model_first import choose_model_first, propose_name
from models_registry.admin.removal import remove_files_after_commit
from models_registry.admin.search_box import SearchBoxes
from models_registry.admin.shares import describe_split, show_split, with_split
from models_registry.admin.size_field import SizeField
from models_registry.models import Deployment, Model, ModelVersion, VersionState
from models_registry.models.profile import PROFILE_FIELDS
from models_registry.selectors import estimate_deployment, with_parts
from models_registry.services.defaults import default_profile
from models_registry.services.deployments import (
    drain_deployments,
    enable_deployments,
    restart_deployments,
)
from models_registry.sizes import filesizeformat

_NEEDS_NEW_REPLICA = frozenset((*PROFILE_FIELDS, "pinned_version", "draft_version"))


@admin.register(Deployment)
class DeploymentAdmin(StepsAboveForm, SearchBoxes, ModelAdmin):  # type: ignore[misc]
    """How it runs, with what can be done about it; below that how it should."""

    form = DeploymentForm
    inlines = (AdapterInline,)
    list_display = (
        "slug",
        "model",
        "state_label",
        "reason",
        "replicas_shown",
        "requests_share",
        "num_slots",
        "total_memory",
    )
    list_filter = ("state", "enabled", "model__kind", NeedsAttention)
    list_filter_submit = True
    list_per_page = 50
    show_full_result_count = False
    search_fields = ("slug", "model__slug", "model__title", "reason")
    readonly_fields = ("memory", "split", "memory_now", "split_now")
    # Boxes that search: a list of thousands would take seconds to draw.
    autocomplete_fields = ("model", "draft_version")
    actions = ("enable", "drain", "disable", "restart")
    actions_submit_line = ("save_and_restart",)
    delete_confirmation_template = "models_registry/deployment_delete.html"
    delete_selected_confirmation_template = "models_registry/deployments_delete.html"
    change_form_outer_before_template = "models_registry/deployment_top.html"
    fieldsets = FIELDSETS

    def list_steps(self, obj: Deployment) -> list[Step]:
        """Give what can be done with it now."""
        return list_deployment_steps(obj)

    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask, and say what clients get afterwards."""
        known = self.get_object(request, object_id)
        context = {
            "consequences": foretell_deletion(known) if known else [],
            **(extra_context or {}),
        }
        response: HttpResponse = super().delete_view(request, object_id, context)
        return response

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask for the model first: the rest is proposed from its header."""
        if request.method == "GET" and (page := choose_model_first(self, request)):
            return page
        response: HttpResponse = super().add_view(request, form_url, extra_context)
        return response

    def get_queryset(self, request: HttpRequest) -> QuerySet[Deployment]:
        """Take along what the estimates need, and how requests are split."""
        deployments: QuerySet[Deployment] = super().get_queryset(request)
        return with_split(with_parts(deployments))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the topics open that have errors."""
        page = context["adminform"]
        page.fieldsets = open_where(page.fieldsets, page.form.errors)
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show panels that follow what is typed to those alone who may change something."""
        may_change = self.has_change_permission(request, obj) if obj else True
        return self.fieldsets if may_change else SEEN_FIELDSETS

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Fix the name (its queue hangs on it) and the model once the deployment exists."""
        return (*self.readonly_fields, "slug", "model") if obj else self.readonly_fields

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Offer values that fit the model, when one is named in the address."""
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        pk = str(initial.get("model", ""))
        model = Model.objects.filter(pk=pk).first() if pk.isdecimal() else None
        if model is None:
            return initial
        version = model.versions.filter(is_current=True).first()
        others = model.deployments.count()
        proposed = {"slug": propose_name(model), "share": 0 if others else 1}
        return {**proposed, **default_profile(model, version), **initial}

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Take sizes with their units."""
        if db_field.name.endswith("_bytes"):
            return db_field.formfield(form_class=SizeField)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer versions of the deployment's own model for pinning, ready ones as drafts."""
        if db_field.name == "draft_version":
            ready = ModelVersion.objects.filter(
                state=VersionState.READY, model__kind__in=(ModelKind.CHAT, ModelKind.COMPLETION)
            )
            kwargs["queryset"] = ready.select_related("model")
        if db_field.name == "pinned_version":
            versions = ModelVersion.objects.filter(model=_model_of(request))
            kwargs["queryset"] = versions.select_related("model")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(
        self, request: HttpRequest, obj: Deployment, form: "forms.ModelForm[Any]", change: bool
    ) -> None:
        """Save; replicas are replaced when what they run with has changed."""
        changed = [name for name in form.changed_data if name in _NEEDS_NEW_REPLICA]
        if change and changed:
            obj.generation += 1
        super().save_model(request, obj, form, change)
        if change and changed:
            labels = (str(Deployment._meta.get_field(name).verbose_name) for name in changed)  # type: ignore[union-attr]
            self._tell_of_replacement(request, obj, ", ".join(labels))

    def _tell_of_replacement(self, request: HttpRequest, obj: Deployment, what: str) -> None:
        if obj.enabled and not obj.is_draining:
            words = f"Replicas are being replaced one by one: {what} changed."
            self.message_user(request, words, messages.INFO)

    def save_formset(
        self,
        request: HttpRequest,
        form: Any,
        formset: "forms.BaseModelFormSet[Any, Any]",
        change: bool,
    ) -> None:
        """Save the adapters; replicas are replaced by ones that have them so."""
        super().save_formset(request, form, formset, change)
        if formset.has_changed():
            restart_deployments(deployments=Deployment.objects.filter(pk=form.instance.pk))
            self._tell_of_replacement(request, form.instance, "adapters")
            remove_files_after_commit()

    @display(description="State")  # type: ignore[untyped-decorator]
    def state_label(self, deployment: Deployment) -> SafeString:
        """Show how it is going."""
        return show_state(deployment)

    @display(description="Replicas")  # type: ignore[untyped-decorator]
    def replicas_shown(self, deployment: Deployment) -> str:
        """Show how many there should be."""
        if not deployment.enabled:
            return "stopped"
        low, high = deployment.min_replicas, deployment.max_replicas
        return str(low) if low == high else f"{low} to {high}"

    @display(description="Memory per replica")  # type: ignore[untyped-decorator]
    def total_memory(self, deployment: Deployment) -> str:
        """Show what a replica may come to."""
        estimate = estimate_deployment(deployment)
        return "unknown" if estimate is None else f"up to {filesizeformat(estimate.most_bytes)}"

    @display(description="Requests")  # type: ignore[untyped-decorator]
    def requests_share(self, deployment: Deployment) -> str:
        """Show how much of its model's requests it gets."""
        return describe_split(deployment)

    @display(description="Memory per replica")  # type: ignore[untyped-decorator]
    def memory(self, deployment: Deployment) -> SafeString:
        """Show what a replica takes and where it fits; the page asks again when values change."""
        return show_live(deployment, "memory", reverse("admin:models_registry_deployment_panel"))

    @display(description="Memory per replica")  # type: ignore[untyped-decorator]
    def memory_now(self, deployment: Deployment) -> SafeString:
        """Show it to who may change nothing."""
        return show_memory(deployment)

    @display(description="Of the model's requests")  # type: ignore[untyped-decorator]
    def split(self, deployment: Deployment) -> SafeString:
        """Show what the shares come to; the page asks again when values change."""
        return show_live(deployment, "split", reverse("admin:models_registry_deployment_panel"))

    @display(description="Of the model's requests")  # type: ignore[untyped-decorator]
    def split_now(self, deployment: Deployment) -> SafeString:
        """Show it to who may change nothing."""
        return show_split(deployment)

    def get_urls(self) -> list[URLPattern]:
        """Add the address that judges the values of an open form."""
        name = "models_registry_deployment_panel"
        view = self.admin_site.admin_view(self.judge_values)
        urls: list[URLPattern] = super().get_urls()
        return [path("panel/", view, name=name), *urls]

    def judge_values(self, request: HttpRequest) -> HttpResponse:
        """Show a panel of a deployment with the values sent, without saving them."""
        show = PANELS.get(request.GET.get("panel", ""))
        if show is None:
            raise Http404
        pk = request.POST.get("deployment", "")
        known = self.get_object(request, pk) if pk.isdecimal() else None
        if not (self.has_change_permission(request) or self.has_add_permission(request)):
            raise PermissionDenied
        form = self.get_form(request, known, change=known is not None)(request.POST, instance=known)
        form.is_valid()  # what is valid of it is on the instance now
        return HttpResponse(show(form.instance))

    @action(description="Load", permissions=["change"])  # type: ignore[untyped-decorator]
    def enable(self, request: HttpRequest, deployments: QuerySet[Deployment]) -> None:
        """Have the chosen deployments run."""
        self._switch(request, deployments, is_enabled=True)

    @action(description="Drain: answer what is there, then stop", permissions=["change"])  # type: ignore[untyped-decorator]
    def drain(self, request: HttpRequest, deployments: QuerySet[Deployment]) -> None:
        """Have the chosen deployments take nothing new, and stop when they are done."""
        chosen = list(deployments.filter(enabled=True, is_draining=False))
        count = drain_deployments(deployments=deployments)
        self._log_each(request, chosen, "Drained.")
        self.message_user(request, f"{_count(count)} will stop when done.", messages.SUCCESS)

    @action(description="Unload: stop at once", permissions=["change"])  # type: ignore[untyped-decorator]
    def disable(self, request: HttpRequest, deployments: QuerySet[Deployment]) -> None:
        """Have the chosen deployments stopped."""
        self._switch(request, deployments, is_enabled=False)

    def _switch(
        self, request: HttpRequest, deployments: QuerySet[Deployment], *, is_enabled: bool
    ) -> None:
        chosen = list(deployments.exclude(enabled=is_enabled, is_draining=False))
        count = enable_deployments(deployments=deployments, is_enabled=is_enabled)
        words = "enabled" if is_enabled else "disabled"
        self._log_each(request, chosen, f"{words.capitalize()}.")
        self.message_user(request, f"{_count(count)} {words}.", messages.SUCCESS)

    def _log_each(self, request: HttpRequest, deployments: list[Deployment], words: str) -> None:
        for deployment in deployments:
            self.log_change(request, deployment, words)

    @action(description="Restart", permissions=["change"])  # type: ignore[untyped-decorator]
    def restart(self, request: HttpRequest, deployments: QuerySet[Deployment]) -> None:
        """Have the replicas of the chosen deployments replaced."""
        chosen = list(deployments)
        count = restart_deployments(deployments=deployments)
        self._log_each(request, chosen, "Restarted.")
        self.message_user(request, f"{_count(count)} will restart.", messages.SUCCESS)

    @action(description="Save and restart", permissions=["change"])  # type: ignore[untyped-decorator]
    def save_and_restart(self, request: HttpRequest, deployment: Deployment) -> None:
        """Have the replicas of this deployment replaced, after saving."""
        restart_deployments(deployments=Deployment.objects.filter(pk=deployment.pk))
        words = (
            f"{deployment} will restart: each of its replicas is replaced, whatever has changed."
        )
        self.message_user(request, words, messages.SUCCESS)


def _model_of(request: HttpRequest) -> int | None:
    """Give the model of the deployment that a page is about, or that its form names."""
    match = request.resolver_match
    pk = str(match.kwargs.get("object_id", "")) if match else ""
    pk = pk or request.POST.get("deployment", "")
    if pk.isdecimal():
        return Deployment.objects.filter(pk=pk).values_list("model", flat=True).first()
    named = request.POST.get("model") or request.GET.get("model", "")
    return int(named) if named.isdecimal() else None


def _count(number: int) -> str:
    return f"{number} deployment{pluralize(number)}"
