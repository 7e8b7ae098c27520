"""Keys in the admin: made once, shown once, then only switched, limited or revoked."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import pluralize
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from llamero.accounts.models import ApiKey, KeyState
from llamero.accounts.services import IssuedKey, issue_api_key, revoke_api_keys

_LABELS = {
    KeyState.ACTIVE: "success",
    KeyState.DISABLED: "warning",
    KeyState.EXPIRED: "warning",
    KeyState.REVOKED: "danger",
}


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin):  # type: ignore[misc]
    """Nothing here can show or change a key once its first page is gone."""

    list_display = ("name", "shown_prefix", "user", "state_label", "expires_at", "last_used_at")
    list_filter = ("enabled", "user")
    search_fields = ("name", "prefix", "user__username")
    autocomplete_fields = ("user",)
    filter_horizontal = ("allowed_models",)
    list_select_related = ("user",)
    actions = ("revoke",)
    fields = (
        "name",
        "user",
        "enabled",
        "expires_at",
        "allowed_models",
        "shown_prefix",
        "state_label",
        "created_at",
        "last_used_at",
        "revoked_at",
    )
    _fixed = ("shown_prefix", "state_label", "created_at", "last_used_at", "revoked_at")
    _add_fields = ("name", "user", "expires_at", "allowed_models")

    @display(description="Key")  # type: ignore[untyped-decorator]
    def shown_prefix(self, key: ApiKey) -> str:
        """Show the public part."""
        return key.shown_prefix

    @display(description="State", label=_LABELS)  # type: ignore[untyped-decorator]
    def state_label(self, key: ApiKey) -> tuple[str, str]:
        """Show what the key is worth."""
        return key.state.value, str(key.state.label)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Ask a new key only for what its maker decides."""
        return self._add_fields if obj is None else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Fix the owner with the first save, and everything with a revocation."""
        if obj is None:
            return ()
        editable = () if obj.revoked_at else ("name", "enabled", "expires_at", "allowed_models")
        return tuple(name for name in self.fields if name not in editable)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Offer the admin's own user as the owner."""
        return {"user": request.user.pk, **super().get_changeform_initial_data(request)}

    @sensitive_variables("issued")
    def save_model(
        self, request: HttpRequest, obj: ApiKey, form: "ModelForm[ApiKey]", change: bool
    ) -> None:
        """Issue a new key, keeping its text for this one response only."""
        if change:
            obj.save()
            return
        issued = issue_api_key(user=obj.user, name=obj.name, expires_at=obj.expires_at)
        obj.__dict__.update(issued.key.__dict__)
        request.issued_key = issued  # type: ignore[attr-defined]

    @sensitive_variables("issued")
    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key on the page that answers the form: no redirect, so nothing stores it."""
        issued: IssuedKey = request.issued_key  # type: ignore[attr-defined]
        context = {
            **self.admin_site.each_context(request),
            "title": "API key created",
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
        num_revoked = revoke_api_keys(keys=chosen)
        for key in chosen:
            self.log_change(request, key, f"Revoked at {timezone.now():%Y-%m-%d %H:%M} UTC")
        self.message_user(
            request, f"{num_revoked} key{pluralize(num_revoked)} revoked.", messages.SUCCESS
        )
