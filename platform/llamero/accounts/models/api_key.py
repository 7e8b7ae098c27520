"""API keys as they are stored: never the key, only what proves that a caller has it."""

from datetime import datetime
from typing import Any
from unicodedata import category

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from llamero.accounts.models.team import Membership, Team
from llamero.accounts.models.token_issuer import TokenIssuer
from llamero.accounts.networks import MAX_NETWORKS, read_networks
from llamero.accounts.scopes import NEVER_BY_DEFAULT, Scope

# Control characters, halves of characters, and what begins a line: names stand in logs and mails.
_UNWRITABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


class KeyState(models.TextChoices):
    """What a key is worth right now; derived, never stored."""

    ACTIVE = "active", "Active"
    DISABLED = "disabled", "Disabled"
    EXPIRED = "expired", "Expired"
    OWNERLESS = "ownerless", "Without owner"
    REVOKED = "revoked", "Revoked"


class Priority(models.IntegerChoices):
    """The class that a key's jobs wait in: see relay/lua/order.lua. Batches wait below all."""

    LOW = -100, "Low"
    NORMAL = 0, "Normal"
    HIGH = 100, "High"


# By their names in files and options.
PRIORITIES = {one.name.lower(): one for one in Priority}


def check_scopes(names: Any) -> None:
    """Refuse what is no list of scopes, each once."""
    known = ", ".join(Scope.values)
    if not isinstance(names, list) or len(set(map(str, names))) != len(names):
        raise ValidationError(f"Scopes must be a list of some of {known}, each once.")
    for name in names:
        if name not in Scope.values:
            raise ValidationError(f"There is no scope {name!r:.60}; there are {known}.")


def check_networks(texts: Any) -> None:
    """Refuse what is no list of networks."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValidationError("Networks must be a list of texts.")
    if len(texts) > MAX_NETWORKS:
        raise ValidationError(f"A key has at most {MAX_NETWORKS} networks.")
    try:
        read_networks(texts)
    except ValueError as error:
        raise ValidationError(str(error)) from None


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Keys by what they are worth."""

    def with_owner(self) -> "ApiKeyQuerySet":
        """Tell of each whether its owner may still call: ``is_owned``."""
        is_owned = models.When(_has_owner(), then=True)
        field = models.BooleanField()
        return self.annotate(is_owned=models.Case(is_owned, default=False, output_field=field))

    def usable(self, now: datetime) -> "ApiKeyQuerySet":
        """Give those that open something at a time."""
        unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
        return self.filter(unexpired, _has_owner(), enabled=True, revoked_at__isnull=True)


def _has_owner() -> Q:
    """Whether user and team may call, and belong together: so says an issuer with each token."""
    membership = Membership.objects.filter(team=OuterRef("team"), user=OuterRef("user"))
    has_user = Q(user__isnull=True) | Q(user__is_active=True)
    has_team = Q(team__isnull=True) | Q(team__is_active=True)
    is_signed = Q(issuer__enabled=True)
    is_member = Q(user__isnull=True) | Q(team__isnull=True) | Q(Exists(membership)) | is_signed
    return has_user & has_team & is_member & (Q(issuer__isnull=True) | is_signed)


class ApiKey(models.Model):
    """One key of a user, of a team, or of a user as a member of a team.

    ``digest`` is HMAC-SHA256 of the whole key under a numbered pepper. After a rotation the ``old``
    columns hold what the key was before, until ``old_expires_at``: who it is, what it may and what
    it has used stay the same.

    A key with an ``issuer`` has no text: it stands for a user whom that issuer's tokens name, so
    that all that holds for keys holds for them.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_keys",
    )
    team = models.ForeignKey(
        Team,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_keys",
        help_text="Beside a user: the key is theirs as long as they are a member.",
    )
    name = models.CharField(max_length=100, help_text="What the key is for.")
    prefix = models.CharField(max_length=8, unique=True, editable=False)
    issuer = models.ForeignKey(
        TokenIssuer,
        on_delete=models.CASCADE,
        null=True,
        editable=False,
        related_name="api_keys",
        help_text="Whose tokens open it; else it has a text.",
    )
    # Unique, and a key of an issuer has none.
    digest = models.CharField(max_length=64, unique=True, null=True, editable=False)  # noqa: DJ001
    pepper = models.PositiveSmallIntegerField(null=True, editable=False)
    old_prefix = models.CharField(max_length=8, blank=True, editable=False)
    # Unique, and most keys have none.
    old_digest = models.CharField(max_length=64, unique=True, null=True, editable=False)  # noqa: DJ001
    old_pepper = models.PositiveSmallIntegerField(null=True, editable=False)
    old_expires_at = models.DateTimeField(null=True, editable=False)
    enabled = models.BooleanField(default=True, help_text="Turn off to refuse the key for a while.")
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="Empty: the key does not expire."
    )
    allowed_models = models.ManyToManyField(
        "models_registry.Model",
        blank=True,
        related_name="api_keys",
        help_text="Empty: the key may use every model.",
    )
    scopes = models.JSONField(
        default=list,
        blank=True,
        validators=[check_scopes],
        help_text="None: all but " + " and ".join(sorted(NEVER_BY_DEFAULT)) + ".",
    )
    networks = models.JSONField(
        default=list,
        blank=True,
        validators=[check_networks],
        help_text="Addresses or networks that the key may be used from, a line each; empty: all.",
    )
    priority = models.SmallIntegerField(
        choices=Priority,
        default=Priority.NORMAL,
        help_text="Where requests wait for a slot, those of a higher priority go first, but for "
        "one in eight. Where memory is short, what runs at a lower one makes room.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="True to the minute."
    )
    rotated_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        verbose_name = "API key"
        constraints = (
            models.CheckConstraint(
                condition=Q(revoked_at__isnull=True) | Q(enabled=False),
                name="revoked_key_is_disabled",
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=False) | Q(team__isnull=False),
                name="key_has_an_owner",
                violation_error_message="A key needs a user or a team.",
            ),
            models.CheckConstraint(
                condition=Q(issuer__isnull=True, digest__isnull=False, pepper__isnull=False)
                | Q(issuer__isnull=False, user__isnull=False, digest=None, old_digest=None),
                name="key_has_a_text_or_an_issuer",
            ),
            models.UniqueConstraint(
                fields=("issuer", "user"),
                condition=Q(team=None),
                name="user_of_an_issuer_once",
            ),
            models.UniqueConstraint(
                fields=("issuer", "user", "team"), name="member_of_an_issuer_once"
            ),
            models.CheckConstraint(
                condition=Q(
                    old_digest__isnull=True, old_pepper__isnull=True, old_expires_at__isnull=True
                )
                | Q(
                    old_digest__isnull=False, old_pepper__isnull=False, old_expires_at__isnull=False
                ),
                name="old_key_is_whole",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.shown_prefix})"

    def clean(self) -> None:
        """Refuse a name of several lines, and a team's key for somebody who is no member."""
        if any(category(one) in _UNWRITABLE for one in self.name):
            why = "Must be one line of text, without control characters."
            raise ValidationError({"name": why})
        if self.user is None or self.team is None or self.issuer_id is not None:
            return
        if not Membership.objects.filter(team=self.team, user=self.user).exists():
            raise ValidationError({"user": f"{self.user} is no member of {self.team}."})

    @property
    def shown_prefix(self) -> str:
        """The part of the key that may be shown."""
        return f"llm_{self.prefix}_…" if self.issuer_id is None else "signed tokens"

    @property
    def shown_owner(self) -> str:
        """Whose it is, in words."""
        return " in ".join(str(one) for one in (self.user, self.team) if one is not None)

    def state_at(self, now: datetime) -> KeyState:
        """Tell what the key is worth at a time; its owner counts where ``with_owner`` told."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return KeyState.EXPIRED
        if not self.enabled:
            return KeyState.DISABLED
        return KeyState.ACTIVE if getattr(self, "is_owned", True) else KeyState.OWNERLESS

    @property
    def state(self) -> KeyState:
        """What the key is worth now."""
        return self.state_at(timezone.now())
