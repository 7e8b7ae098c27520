"""API keys as they are stored: never the key, only what proves that a caller has it."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone


class KeyState(models.TextChoices):
    """What a key is worth right now; derived, never stored."""

    ACTIVE = "active", "Active"
    DISABLED = "disabled", "Disabled"
    EXPIRED = "expired", "Expired"
    REVOKED = "revoked", "Revoked"


class ApiKey(models.Model):
    """One key of one user. ``digest`` is HMAC-SHA256 of the whole key under a numbered pepper."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys"
    )
    name = models.CharField(max_length=100, help_text="What the key is for.")
    prefix = models.CharField(max_length=8, unique=True, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    pepper = models.PositiveSmallIntegerField(editable=False)
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
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="True to the minute."
    )
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-created_at",)
        verbose_name = "API key"
        constraints = (
            models.CheckConstraint(
                condition=models.Q(revoked_at__isnull=True) | models.Q(enabled=False),
                name="revoked_key_is_disabled",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.shown_prefix})"

    @property
    def shown_prefix(self) -> str:
        """The part of the key that may be shown."""
        return f"llm_{self.prefix}_…"

    def state_at(self, now: datetime) -> KeyState:
        """Tell what the key is worth at a time."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return KeyState.EXPIRED
        return KeyState.ACTIVE if self.enabled else KeyState.DISABLED

    @property
    def state(self) -> KeyState:
        """What the key is worth now."""
        return self.state_at(timezone.now())
