"""Keys in the admin: made once, shown once, then only switched, limited, rotated or revoked."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import pluralize
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from unfold.decorators import action, display

from llamero.accounts.admin.forms import ApiKeyForm, RotationForm, TeamKeyForm
from llamero.accounts.admin.key_steps import list_key_steps
from llamero.accounts.admin.state_filter import StateFilter
from llamero.accounts.admin.team_rights import TeamRightsMixin, administered_teams
from llamero.accounts.models import ApiKey, KeyState, Priority
from llamero.accounts.scopes import NEVER_BY_DEFAULT
from llamero.accounts.services import (
    IssuedKey,
    KeyHasEnded,
    issue_api_key,
    revoke_api_keys,
    rotate_api_key,
    switch_api_keys,
)
from models_registry.admin.confirmed import Step, StepsAboveForm
from models_registry.admin.few_choices import FewChoicesFilter, are_few
from models_registry.admin.search_box import ManyRowsField, ManySearchBox, SearchBoxes

_LABELS = {
    KeyState.ACTIVE: "success",
    KeyState.DISABLED: "warning",
    KeyState.EXPIRED: "warning",
    KeyState.OWNERLESS: "warning",
    KeyState.REVOKED: "danger",
}


@admin.register(ApiKey)
class ApiKeyAdmin(StepsAboveForm, SearchBoxes, TeamRightsMixin):
    """Nothing here can show or change a key once its first page is gone."""

    form = ApiKeyForm
    list_display = ("name", "shown_prefix", "owner", "state_label", "expires_at", "last_used_at")
    list_filter = (StateFilter, ("team", FewChoicesFilter), "priority", "issuer", "pepper")
    search_fields = ("name", "prefix", "old_prefix", "user__username", "team__name")
    filter_horizontal = ("allowed_models",)
    list_select_related = ("user", "team", "issuer")
    actions = ("revoke", "disable", "enable")
    change_form_outer_before_template = "accounts/api_key_top.html"
    delete_confirmation_template = "accounts/api_key_delete.html"
    delete_selected_confirmation_template = "accounts/api_keys_delete.html"
    fields = (
        "name",
        "user",
        "team",
        "enabled",
        "expires_at",
        "allowed_models",
        "scopes",
        "networks",
        "priority",
        "shown_prefix",
        "old_key",
        "state_label",
        "created_at",
        "last_used_at",
        "rotated_at",
        "revoked_at",
    )
    words_when_empty = {  # noqa: RUF012 - read as Django's own declarations are
        "expires_at": "Never",
        "allowed_models": "Every model",
        "scopes": f"All scopes but {' and '.join(sorted(NEVER_BY_DEFAULT))}",
        "networks": "Any network",
    }
    _settable = ("expires_at", "allowed_models", "scopes", "networks", "priority")
    _add_fields = ("name", "user", "team", *_settable)
    _editable = ("name", "enabled", *_settable)
    # Whose keys others would notice is not for a team's admin to decide.
    _above_teams = ("user", "priority")

    class Media:
        css = {"all": ("models_registry/pages.css",)}  # noqa: RUF012 - Django's own declaration

    @display(description="Key")  # type: ignore[untyped-decorator]
    def shown_prefix(self, key: ApiKey) -> str:
        """Show the public part."""
        return key.shown_prefix

    @display(description="Owner", ordering="user__username")  # type: ignore[untyped-decorator]
    def owner(self, key: ApiKey) -> str:
        """Show whose it is."""
        return key.shown_owner

    @display(description="Old key")  # type: ignore[untyped-decorator]
    def old_key(self, key: ApiKey) -> str:
        """Show what else opens, and for how long."""
        if key.revoked_at or key.old_expires_at is None or key.old_expires_at <= timezone.now():
            return "-"
        return f"llm_{key.old_prefix}_… until {key.old_expires_at:%Y-%m-%d %H:%M} UTC"

    @display(description="State", label=_LABELS)  # type: ignore[untyped-decorator]
    def state_label(self, key: ApiKey) -> tuple[str, str]:
        """Show what the key is worth."""
        return key.state.value, str(key.state.label)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        """Read with each key whether its owner may call."""
        return super().get_queryset(request).with_owner()  # type: ignore[attr-defined,no-any-return]

    def list_steps(self, obj: ApiKey) -> list[Step]:
        """Give what can be done with it now."""
        return list_key_steps(obj)

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Offer team admins less."""
        if self.is_confined(request):
            kwargs["form"] = TeamKeyForm
        return super().get_form(request, obj, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Ask a new key only for what its maker decides; a team's admin makes the team's own."""
        if obj is not None:
            return self.fields
        hidden = self._above_teams if self.is_confined(request) else ()
        return [name for name in self._add_fields if name not in hidden]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Fix the owner with the first save, and everything with a revocation."""
        if obj is None:
            return ()
        fixed = self._above_teams if self.is_confined(request) else ()
        editable = set() if obj.revoked_at else {*self._editable}.difference(fixed)
        return tuple(name for name in self.fields if name not in editable)

    def get_autocomplete_fields(self, request: HttpRequest) -> Any:
        """Search for users and teams, where one may see them all."""
        return () if self.is_confined(request) else ("user", "team")

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Offer team admins their teams."""
        if db_field.name == "team" and self.is_confined(request):
            kwargs |= {"queryset": administered_teams(request.user), "required": True}
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Name the lists "Available models" and "Chosen models", after what is in them.

        A box that searches takes their place when they would be long, for those who may search.
        """
        kwargs["form_class"] = ManyRowsField
        may_search = request.user.has_perm("models_registry.view_model")
        if may_search and not are_few(db_field.related_model.objects.all()):
            kwargs["widget"] = ManySearchBox(db_field, self.admin_site)
        field = super().formfield_for_manytomany(db_field, request, **kwargs)
        if db_field.name == "allowed_models" and field is not None:
            field.widget.verbose_name = "models"
        return field

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Offer the admin's own user as the owner."""
        return {"user": request.user.pk, **super().get_changeform_initial_data(request)}

    @sensitive_variables("issued")
    def save_model(
        self, request: HttpRequest, obj: ApiKey, form: "ModelForm[ApiKey]", change: bool
    ) -> None:
        """Issue a new key, keeping its text for this one response only.

        Of a known one only what was asked is written: it may have been rotated meanwhile.
        """
        if change:
            columns = {field.name for field in obj._meta.concrete_fields}
            obj.save(update_fields=columns.intersection(form.fields))
            return
        issued = issue_api_key(
            user=obj.user,
            team=obj.team,
            name=obj.name,
            expires_at=obj.expires_at,
            scopes=obj.scopes,
            networks=obj.networks,
            priority=Priority(obj.priority),
        )
        obj.__dict__.update(issued.key.__dict__)
        request.issued_key = issued  # type: ignore[attr-defined]

    @sensitive_variables("issued")
    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key on the page that answers the form: no redirect, so nothing stores it."""
        issued: IssuedKey = request.issued_key  # type: ignore[attr-defined]
        return self._show_once(request, issued, "API key created")

    def get_urls(self) -> list[URLPattern]:
        """Add the page that rotates a key."""
        view = self.admin_site.admin_view(self.rotate)
        urls: list[URLPattern] = super().get_urls()
        return [path("<path:object_id>/rotate/", view, name="accounts_apikey_rotate"), *urls]

    @sensitive_variables("issued")
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for how long the old key should work; then show the new one, this once."""
        key = self.get_object(request, object_id)
        if key is None or key.issuer_id is not None:
            raise Http404
        if not self.has_change_permission(request, key):
            raise PermissionDenied
        if key.revoked_at is not None:
            self.message_user(request, f"{key} was revoked, and stays so.", messages.ERROR)
            return HttpResponseRedirect(reverse("admin:accounts_apikey_change", args=[key.pk]))
        form = RotationForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            try:
                issued = rotate_api_key(key=key, grace=form.grace)
            except KeyHasEnded:
                form.add_error(None, "This key was revoked, and stays so. Create another one.")
            else:
                self.log_change(request, key, f"Rotated; the old key ends in {form.grace}.")
                return self._show_once(request, issued, "API key rotated")
        context = {
            **self.admin_site.each_context(request),
            "title": f"Rotate {key}",
            "opts": self.opts,
            "api_key": key,
            "form": form,
        }
        return TemplateResponse(request, "accounts/api_key_rotation.html", context)

    @sensitive_variables("issued")
    def _show_once(self, request: HttpRequest, issued: IssuedKey, title: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "api_key": issued.key,
            "key_text": issued.secret_text,
        }
        response = TemplateResponse(request, "accounts/api_key_issued.html", context)
        response["Cache-Control"] = "no-store"
        return response

    @action(description="Revoke the selected keys", permissions=["change"])  # type: ignore[untyped-decorator]
    def revoke(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
        """End the chosen keys for good."""
        chosen = list(keys)
        self._tell_of(request, chosen, revoke_api_keys(keys=chosen), "revoked")

    @action(description="Disable the selected keys", permissions=["change"])  # type: ignore[untyped-decorator]
    def disable(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
        """Refuse the chosen keys for a while."""
        chosen = list(keys)
        self._tell_of(request, chosen, switch_api_keys(keys=chosen, enabled=False), "disabled")

    @action(description="Enable the selected keys", permissions=["change"])  # type: ignore[untyped-decorator]
    def enable(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
        """Accept the chosen keys again, but for those that were revoked."""
        chosen = list(keys)
        self._tell_of(request, chosen, switch_api_keys(keys=chosen, enabled=True), "enabled")

    def _tell_of(self, request: HttpRequest, keys: list[ApiKey], count: int, word: str) -> None:
        for key in keys:
            self.log_change(request, key, f"{word.capitalize()}.")
        self.message_user(request, f"{count} key{pluralize(count)} {word}.", messages.SUCCESS)
