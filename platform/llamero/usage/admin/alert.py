"""Alerts in the admin: rules, and what they told."""

import json
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from llamero.accounts.targets import TARGETS, show_target
from llamero.usage.models import AlertNotice, NoticeState, UsageAlert
from llamero.usage.models.alert import NO_MAIL_SERVER
from llamero.usage.notifying import try_alert
from models_registry.admin.confirmed import Step, StepsAboveForm
from models_registry.admin.search_box import SearchBoxes

_STATES = {
    NoticeState.WAITING: "info",
    NoticeState.SENT: "success",
    NoticeState.GIVEN_UP: "danger",
}
_WHOSE = (
    "Choose one, and its budgets are watched. Without any the alert watches all budgets there are."
)


def _foretell_trial(alert: UsageAlert) -> list[str]:
    lines = [f"An e-mail goes to {', '.join(alert.recipients)}."] if alert.recipients else []
    if alert.webhook_url:
        lines.append(f"The webhook at {urlsplit(alert.webhook_url).hostname} is told.")
    return [*lines, "Both say that it is a trial."]


def _carry_out_trial(alert: UsageAlert) -> str:
    failed = try_alert(alert)
    if failed:
        raise ValidationError(failed)
    return f"All were told of a trial of {alert}."


_TRY = Step("try", "Try it", "send", _foretell_trial, _carry_out_trial)


class SharesField(forms.JSONField):
    """Whole numbers of per cent, with commas between them."""

    widget = UnfoldAdminTextInputWidget

    def prepare_value(self, value: Any) -> str:
        """Write them."""
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")

    def to_python(self, value: Any) -> Any:
        """Read them; the model's own rules come after."""
        parts = [part.strip().removesuffix("%").strip() for part in str(value or "").split(",")]
        if not all(part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts):
            raise forms.ValidationError("Give whole numbers of per cent, as in 80, 100.")
        return [int(part) for part in parts]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Tell whether they are others."""
        return self.prepare_value(initial) != str(data or "")


class LinesField(forms.JSONField):
    """Texts, a line each."""

    widget = UnfoldAdminTextareaWidget
    empty_values = (None,)

    def prepare_value(self, value: Any) -> str:
        """Write them."""
        return "\n".join(map(str, value)) if isinstance(value, list) else str(value or "")

    def to_python(self, value: Any) -> Any:
        """Read them; empty lines are none."""
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Tell whether they are others."""
        return bool((initial or []) != self.to_python(data))


class UsageAlertForm(forms.ModelForm):  # type: ignore[type-arg]
    """An alert, with lists as people write them."""

    shares = SharesField(
        initial=UsageAlert._meta.get_field("shares").get_default,
        help_text="In per cent of a budget, as in 80, 100.",
    )
    recipients = LinesField(required=False, help_text="E-mail addresses, a line each.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Say beside the addresses where nothing can be sent to them."""
        super().__init__(*args, **kwargs)
        if not settings.EMAIL_IS_SET_UP and "recipients" in self.fields:
            field = self.fields["recipients"]
            field.help_text = f"{field.help_text} {NO_MAIL_SERVER} They get nothing until then."

    class Meta:
        model = UsageAlert
        fields = ("name", "enabled", *TARGETS, "shares", "recipients", "webhook_url")


@admin.register(UsageAlert)
class UsageAlertAdmin(StepsAboveForm, SearchBoxes, ModelAdmin):  # type: ignore[misc]
    """Whose budgets are watched, and who is told."""

    form = UsageAlertForm
    steps = (_TRY,)
    change_form_outer_before_template = "usage/alert_top.html"
    list_display = (
        "name",
        "enabled",
        "watched",
        "shown_shares",
        "shown_recipients",
        "shown_webhook",
    )
    list_filter = ("enabled",)
    list_select_related = TARGETS
    search_fields = ("name",)
    autocomplete_fields = TARGETS
    readonly_fields = ("shown_webhook", "shown_secret")
    words_when_empty = {"recipients": "Nobody by e-mail"}  # noqa: RUF012 - read as Django's own

    class Media:
        css = {"all": ("models_registry/pages.css",)}  # noqa: RUF012 - Django's own declaration

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Keep secrets from those who may only look: where a webhook is often is one, too."""
        may_change = obj is None or self.has_change_permission(request, obj)
        webhook = ("webhook_url", "shown_secret") if may_change else ("shown_webhook",)
        return (
            (None, {"fields": ("name", "enabled", "shares")}),
            ("Whose budgets", {"fields": TARGETS, "description": _WHOSE}),
            ("Who is told", {"fields": ("recipients", *webhook)}),
        )

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Let nobody find a secret out by asking whether it begins with something."""
        is_secret = lookup.startswith(("webhook_url", "webhook_secret"))
        return not is_secret and bool(super().lookup_allowed(lookup, value, request))

    @display(description="Watches")  # type: ignore[untyped-decorator]
    def watched(self, alert: UsageAlert) -> str:
        """Show whose budgets."""
        return show_target(alert) or "all budgets"

    @display(description="Shares")  # type: ignore[untyped-decorator]
    def shown_shares(self, alert: UsageAlert) -> str:
        """Show at which shares."""
        return ", ".join(f"{share} %" for share in alert.shares)

    def save_model(self, request: HttpRequest, obj: UsageAlert, form: Any, change: bool) -> None:
        """Save it, and say what keeps it from telling anybody."""
        super().save_model(request, obj, form, change)
        if obj.hindrance:
            messages.warning(request, f"Nobody is told by e-mail. {obj.hindrance}")

    @display(description="E-mail")  # type: ignore[untyped-decorator]
    def shown_recipients(self, alert: UsageAlert) -> str:
        """Show how many are told, or why they are not."""
        return alert.hindrance or str(len(alert.recipients) or "-")

    @display(description="Webhook")  # type: ignore[untyped-decorator]
    def shown_webhook(self, alert: UsageAlert) -> str:
        """Show whom it tells, not all of the address."""
        return urlsplit(alert.webhook_url).hostname or "-"

    @display(description="Signed with")  # type: ignore[untyped-decorator]
    def shown_secret(self, alert: UsageAlert) -> str:
        """Show what the webhook's receiver checks signatures with, to those who may change it."""
        return alert.webhook_secret if alert.pk else "Made when it is saved."


@admin.register(AlertNotice)
class AlertNoticeAdmin(ModelAdmin):  # type: ignore[misc]
    """What was told; read only."""

    list_display = (
        "created_at",
        "alert",
        "channel",
        "budget_label",
        "share",
        "state_label",
        "last_error",
    )
    list_filter = ("state", "channel")
    list_select_related = ("alert",)
    fields = (*list_display, "num_tries", "begins_at", "shown_message", "next_try_at")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Let none be made by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let none be changed."""
        return False

    @display(description="State", label=_STATES)  # type: ignore[untyped-decorator]
    def state_label(self, notice: AlertNotice) -> tuple[str, str]:
        """Show whether it was told."""
        return notice.state, str(notice.get_state_display())

    @display(description="Message")  # type: ignore[untyped-decorator]
    def shown_message(self, notice: AlertNotice) -> str:
        """Show what was told."""
        return json.dumps(notice.message, indent=2, ensure_ascii=False)
