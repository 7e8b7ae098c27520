"""The forms of everybody's own page."""

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.template.defaultfilters import pluralize

from llamero.accounts.models import Team
from llamero.people.own_keys import allowed_scopes

_DAYS = {7: "7 days", 30: "30 days", 90: "90 days", 365: "1 year", 0: "no end"}
_GRACES = (
    ("0", "no longer, from now on"),
    ("1", "1 hour"),
    ("24", "1 day"),
    ("168", "7 days"),
)


class SignInForm(AuthenticationForm):
    """A name and a password of here."""

    error_messages = {  # noqa: RUF012 -- Django's own is a dict
        "invalid_login": "That name and password do not fit, or the account is not active.",
        "inactive": "That name and password do not fit, or the account is not active.",
    }


class OwnKeyForm(forms.Form):
    """A new key of one's own."""

    name = forms.CharField(max_length=100, label="What the key is for")
    team = forms.ModelChoiceField(
        Team.objects.none(), required=False, empty_label="Only mine", label="Team"
    )
    days = forms.TypedChoiceField(coerce=int, label="Ends after")
    scopes = forms.MultipleChoiceField(
        label="May be used for", widget=forms.CheckboxSelectMultiple, required=True
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"].queryset = Team.objects.filter(members=user, is_active=True)  # type: ignore[attr-defined]
        longest = settings.OWN_KEYS.longest_days
        days = [(n, word) for n, word in _DAYS.items() if not longest or 0 < n <= longest]
        scopes = allowed_scopes()
        self.fields["days"].choices = days or [(longest, f"{longest} day{pluralize(longest)}")]  # type: ignore[attr-defined]
        self.fields["days"].initial = days[-1][0] if days else longest
        self.fields["scopes"].choices = [(one.value, one.label) for one in scopes]  # type: ignore[attr-defined]
        self.fields["scopes"].initial = [one.value for one in scopes]


class OwnRotationForm(forms.Form):
    """How long the old text of a key still opens what the new one does."""

    hours = forms.TypedChoiceField(
        choices=_GRACES, initial="24", coerce=int, label="The old one works for"
    )

    @property
    def grace(self) -> timedelta:
        """How long that is."""
        return timedelta(hours=self.cleaned_data["hours"])
