"""Identity providers whose tokens open the API, in the admin."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import pluralize
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from llamero.accounts.admin.token_issuer_form import TokenIssuerForm
from llamero.accounts.models import TokenIssuer
from llamero.accounts.tokens.issuers import CannotReadKeys, read_keys_of

_RIGHTS = ("scope_claim", "scope_map", "models_claim", "team_claim")


@admin.register(TokenIssuer)
class TokenIssuerAdmin(ModelAdmin):  # type: ignore[misc]
    """Whoever may change one decides who may call: a permission for few."""

    form = TokenIssuerForm
    list_display = ("name", "issuer", "enabled", "num_keys", "changed_at")
    search_fields = ("name", "issuer")
    readonly_fields = ("created_at", "changed_at")
    actions_detail = ("check_keys",)
    words_when_empty = {  # noqa: RUF012 - read as Django's own declarations are
        "scope_claim": "What a key without a list of scopes is for",
        "scope_map": "Ours, by our names",
        "models_claim": "Every model",
        "team_claim": "No team",
    }
    fieldsets = (
        (None, {"fields": ("name", "enabled", "issuer", "audiences")}),
        ("Keys", {"fields": ("jwks_url", "keys", "algorithms")}),
        ("What a token must say", {"fields": ("leeway_seconds", "required_claims")}),
        ("Whom it is of", {"fields": ("user_policy", "username_claim")}),
        ("What it allows", {"fields": _RIGHTS}),
        ("History", {"fields": ("created_at", "changed_at")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[TokenIssuer]:
        """Count whose tokens were seen."""
        issuers: QuerySet[TokenIssuer] = super().get_queryset(request)
        return issuers.annotate(num_keys=Count("api_keys"))

    @display(description="Users seen", ordering="num_keys")  # type: ignore[untyped-decorator]
    def num_keys(self, issuer: TokenIssuer) -> int:
        """Show how many."""
        return issuer.num_keys  # type: ignore[attr-defined,no-any-return]

    @action(description="Check its keys", permissions=["change"])  # type: ignore[untyped-decorator]
    def check_keys(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Read the keys now, and tell what was found."""
        issuer: Any = self.get_object(request, object_id)
        if issuer is not None:
            try:
                names = [key.kid or "no id" for key in read_keys_of(issuer)]
            except CannotReadKeys as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                found = f"{len(names)} key{pluralize(len(names))}: {', '.join(names):.500}"
                self.message_user(request, found, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:accounts_tokenissuer_change", args=(object_id,)))
