"""The forms of keys: scopes to tick, networks a line each, and how long an old text still opens."""

import re
from datetime import timedelta
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
)

from llamero.accounts.models import ApiKey
from llamero.accounts.networks import read_networks
from llamero.accounts.scopes import NEVER_BY_DEFAULT, Scope

_GRACES = (
    ("0", "no longer, from now on"),
    ("1", "1 hour"),
    ("24", "1 day"),
    ("168", "7 days"),
    ("720", "30 days"),
)


class NetworksField(forms.CharField):
    """Addresses and networks as lines of text; a list in Python."""

    widget = UnfoldAdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        """Show a list as lines."""
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        """Read lines, spelled as networks are."""
        words = re.split(r"[\s,;]+", super().clean(value).strip())
        try:
            return [str(network) for network in read_networks(filter(None, words))]
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None


def _scopes_field(scopes: list[Scope]) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        choices=[(scope.value, f"{scope.value}: {scope.label}") for scope in scopes],
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=ApiKey._meta.get_field("scopes").help_text,
    )


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """A key, new or known."""

    scopes = _scopes_field(list(Scope))
    networks = NetworksField(required=False, help_text=ApiKey._meta.get_field("networks").help_text)

    class Meta:
        model = ApiKey
        fields = ("name", "user", "team", "enabled", "expires_at", "allowed_models", "priority")


class TeamKeyForm(ApiKeyForm):
    """A key as a team's admin may make it: without what others would notice."""

    scopes = _scopes_field([scope for scope in Scope if scope not in NEVER_BY_DEFAULT])


class RotationForm(forms.Form):
    """How long the old text of a key still opens what the new one does."""

    hours = forms.TypedChoiceField(
        label="The old key works for",
        choices=_GRACES,
        initial="24",
        coerce=int,
        widget=UnfoldAdminSelectWidget,
        help_text="Long enough to change it wherever it is used. One that leaked: no longer.",
    )

    @property
    def grace(self) -> timedelta:
        """How long that is."""
        return timedelta(hours=self.cleaned_data["hours"])
