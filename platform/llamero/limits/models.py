"""How much keys, users, teams, models and everybody together may use."""

from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Value
from django.db.models.functions import Coalesce

from llamero.accounts.models import ApiKey, Team
from llamero.accounts.targets import TARGETS, name_target, of_all, of_one_or_all, show_target
from models_registry.models import Model

# What the counters of the scripts hold exactly.
MOST = 10**15


def check_time_zone(name: str) -> None:
    """Refuse what is no time zone."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"There is no time zone {name!r:.60}; names are like Europe/Berlin or UTC."
        raise ValidationError(message) from None


def _number(name: str, help_text: str = "") -> Any:
    return models.PositiveBigIntegerField(
        name,
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST)],
        help_text=help_text,
    )


def _money(name: str) -> Any:
    return models.DecimalField(
        name,
        null=True,
        blank=True,
        max_digits=10,
        decimal_places=4,
        validators=[MinValueValidator(Decimal("0.0001"))],
        help_text="At the prices of the models, whatever their currency.",
    )


class LimitSet(models.Model):
    """The limits of one key, user, team or model, or, where it names none, of all together.

    What is empty is not limited. All limits that concern a request hold, so the tightest decides.
    """

    key = models.OneToOneField(
        ApiKey, on_delete=models.CASCADE, null=True, blank=True, related_name="limits"
    )
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="limits",
    )
    team = models.OneToOneField(
        Team, on_delete=models.CASCADE, null=True, blank=True, related_name="limits"
    )
    model = models.OneToOneField(
        Model, on_delete=models.CASCADE, null=True, blank=True, related_name="limits"
    )
    requests_per_minute = _number("requests per minute")
    tokens_per_minute = _number("tokens per minute", "Of prompts and answers together.")
    input_tokens_per_minute = _number("prompt tokens per minute")
    output_tokens_per_minute = _number("answer tokens per minute")
    concurrent_requests = _number("concurrent requests", "Running or waiting for a slot.")
    queued_requests = _number("queued requests", "Waiting, beyond what finds a free slot.")
    tokens_per_request = _number("tokens per request", "Of prompts and answers together.")
    tokens_per_day = _number("tokens per day")
    tokens_per_month = _number("tokens per month")
    money_per_day = _money("money per day")
    money_per_month = _money("money per month")
    time_zone = models.CharField(
        max_length=64,
        default="UTC",
        validators=[check_time_zone],
        help_text="Where days and months begin, such as Europe/Berlin.",
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("pk",)
        verbose_name = "set of limits"
        verbose_name_plural = "sets of limits"
        constraints = (
            models.CheckConstraint(
                condition=of_one_or_all(),
                name="limits_are_of_one",
                violation_error_message="Limits are of one key, user, team or model, or of all.",
            ),
            models.UniqueConstraint(
                Coalesce(*TARGETS, Value(0)),
                condition=of_all(),
                name="limits_of_all_once",
                violation_error_message="There are limits of all already: change those.",
            ),
        )

    def __str__(self) -> str:
        return f"Limits of {self.shown_target}"

    @property
    def shown_target(self) -> str:
        """Whose they are, in words."""
        return show_target(self) or "all together"

    @property
    def subject(self) -> str:
        """Whose they are, as counters are named."""
        return name_target(self) or "all"

    @property
    def revision(self) -> int:
        """Grows with each change: what was used of a budget is then looked up in the ledger."""
        return int(self.updated_at.timestamp() * 1000)
