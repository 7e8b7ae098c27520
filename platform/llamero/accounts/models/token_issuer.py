"""Whose signed tokens open the API, and what their claims mean here."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q

from llamero.accounts.scopes import Scope
from llamero.accounts.tokens.algorithms import ALGORITHMS, default_algorithms
from llamero.accounts.tokens.key_material import read_keys
from llamero.egress import UnsafeAddress, check_address

MAX_LEEWAY_SECONDS = 300


class UserPolicy(models.TextChoices):
    """Who the subject of a token must be."""

    EXISTING = "existing", "A user of that name who was made beforehand"
    CREATED = "created", "Anybody; a user is made when a token first names them"


def check_texts(texts: Any) -> None:
    """Refuse what is no list of different texts."""
    if not isinstance(texts, list) or not all(isinstance(one, str) and one for one in texts):
        raise ValidationError('Must be a list of texts, as ["one", "two"].')
    if len(set(texts)) != len(texts):
        raise ValidationError("Names something twice.")


def check_audiences(audiences: Any) -> None:
    """Refuse a token for nobody in particular."""
    check_texts(audiences)
    if not audiences:
        raise ValidationError("Name at least one audience: tokens for others must not count here.")


def check_algorithms(names: Any) -> None:
    """Refuse what is no list of algorithms with a public key."""
    check_texts(names)
    for name in names:
        if name not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise ValidationError(f"There is no algorithm {name!r:.60}; there are {known}.")
    if not names:
        raise ValidationError("Name at least one algorithm.")


def check_required_claims(claims: Any) -> None:
    """Refuse what no claim can be compared with."""
    if not isinstance(claims, dict):
        raise ValidationError('Must be an object, as {"azp": "chat", "roles": ["llm"]}.')
    for name, wanted in claims.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        if not values or not all(isinstance(one, str | int | bool) for one in values):
            raise ValidationError(f"{name:.60}: must be a text, a number, true, or a list of them.")


def check_scope_map(scope_map: Any) -> None:
    """Refuse what does not lead from texts to lists of our scopes."""
    if not isinstance(scope_map, dict):
        raise ValidationError('Must be an object, as {"llm.chat": ["inference", "models"]}.')
    known = ", ".join(Scope.values)
    for name, scopes in scope_map.items():
        if not isinstance(scopes, list) or not set(map(str, scopes)) <= set(Scope.values):
            raise ValidationError(f"{name:.60}: must be a list of some of {known}.")


class TokenIssuer(models.Model):
    """An identity provider. Without one that is enabled, tokens are as good as wrong keys.

    Its keys are pasted (``keys``), or read at ``jwks_url``, or found from its discovery document.
    """

    name = models.CharField(max_length=60, unique=True, help_text="How it is called here.")
    enabled = models.BooleanField(
        default=True, help_text="Turn off to refuse all its tokens, and end what they have open."
    )
    issuer = models.CharField(
        max_length=255, unique=True, help_text="The claim iss, letter by letter."
    )
    audiences = models.JSONField(
        default=list,
        validators=[check_audiences],
        help_text="The claim aud must name one of these.",
    )
    jwks_url = models.CharField(
        "JWKS URL",
        max_length=500,
        blank=True,
        help_text="Where its public keys are. Empty: as its discovery document says.",
    )
    keys = models.TextField(
        "public keys",
        blank=True,
        help_text="A JWKS document, or keys and certificates as PEM: nothing is fetched then.",
    )
    algorithms = models.JSONField(
        default=default_algorithms, validators=[check_algorithms], help_text="No others count."
    )
    leeway_seconds = models.PositiveSmallIntegerField(
        default=30,
        validators=[MaxValueValidator(MAX_LEEWAY_SECONDS)],
        help_text="How far its clock and ours may differ.",
    )
    required_claims = models.JSONField(
        default=dict,
        blank=True,
        validators=[check_required_claims],
        help_text="Claims that must be there: a value, a list with it, or true for any.",
    )
    user_policy = models.CharField(
        "users", max_length=8, choices=UserPolicy.choices, default=UserPolicy.EXISTING
    )
    username_claim = models.CharField(
        max_length=100,
        default="preferred_username",
        help_text="Names the user when a subject (sub) is first seen; then the subject counts.",
    )
    scope_claim = models.CharField(
        max_length=100,
        default="scope",
        blank=True,
        help_text="Lists what the token is for; without any scope of ours it is for nothing. "
        "Empty: for what a key without a list is for.",
    )
    scope_map = models.JSONField(
        default=dict,
        blank=True,
        validators=[check_scope_map],
        help_text="What its scopes mean here. Empty: ours, by our names.",
    )
    models_claim = models.CharField(
        max_length=100, blank=True, help_text="Lists the models; * is all. Empty: all of them."
    )
    team_claim = models.CharField(
        max_length=100,
        blank=True,
        help_text="Names the team; one of ours must be among those it names. Empty: no team.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=Q(jwks_url="") | Q(keys=""),
                name="issuer_has_one_source_of_keys",
                violation_error_message="Give a JWKS URL or public keys, not both.",
            ),
            models.CheckConstraint(
                condition=Q(user_policy__in=UserPolicy.values), name="user_policy_is_known"
            ),
        )

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse keys that cannot be read, and addresses that must not be asked."""
        errors: dict[str, str] = {}
        if self.keys:
            try:
                read_keys(self.keys)
            except ValueError as error:
                errors["keys"] = str(error)
        for field, address in (("jwks_url", self.jwks_url), ("issuer", self._discovered)):
            try:
                if address:
                    check_address(address)
            except UnsafeAddress as error:
                errors[field] = str(error)
        if errors:
            raise ValidationError(errors)

    @property
    def _discovered(self) -> str:
        """The address that a discovery document is asked from, if one is."""
        return "" if self.keys or self.jwks_url else self.issuer


class Identity(models.Model):
    """Who a subject of an identity provider is here: by token, or signed in to the admin."""

    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("issuer", "subject")
        verbose_name_plural = "identities"
        constraints = (
            models.UniqueConstraint(fields=("issuer", "subject"), name="identity_is_one_user"),
            # A name that its provider gives to somebody else does not lead to who had it before.
            models.UniqueConstraint(fields=("issuer", "user"), name="user_has_one_identity"),
        )

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"
