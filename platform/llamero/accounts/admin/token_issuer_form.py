"""The form of an identity provider: audiences a line each, algorithms to tick, claims as JSON."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextareaWidget

from llamero.accounts.models import TokenIssuer
from llamero.accounts.tokens.algorithms import ALGORITHMS, default_algorithms


class LinesField(forms.CharField):
    """Texts as lines; a list in Python."""

    widget = UnfoldAdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        """Show a list as lines."""
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        """Read lines, each once."""
        lines = (line.strip() for line in super().clean(value).splitlines())
        return list(dict.fromkeys(filter(None, lines)))


def _help(name: str) -> Any:
    field: Any = TokenIssuer._meta.get_field(name)
    return field.help_text


def _json_field(name: str) -> forms.JSONField:
    return forms.JSONField(
        required=False, initial=dict, widget=UnfoldAdminTextareaWidget, help_text=_help(name)
    )


class TokenIssuerForm(forms.ModelForm):  # type: ignore[type-arg]
    """An identity provider, new or known."""

    audiences = LinesField(help_text=_help("audiences") + " A line each.")
    algorithms = forms.MultipleChoiceField(
        choices=[(name, name) for name in ALGORITHMS],
        initial=default_algorithms,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=_help("algorithms"),
    )
    required_claims = _json_field("required_claims")
    scope_map = _json_field("scope_map")

    class Meta:
        model = TokenIssuer
        fields = (
            "name",
            "enabled",
            "issuer",
            "jwks_url",
            "keys",
            "leeway_seconds",
            "user_policy",
            "username_claim",
            "scope_claim",
            "models_claim",
            "team_claim",
        )

    def clean_required_claims(self) -> Any:
        """Take nothing for no claims."""
        return self.cleaned_data["required_claims"] or {}

    def clean_scope_map(self) -> Any:
        """Take nothing for an empty map."""
        return self.cleaned_data["scope_map"] or {}
