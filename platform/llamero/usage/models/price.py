"""What a model's tokens cost, and since when."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from llamero.usage.money import PRICE_DECIMALS

MOST = Decimal(10**9)
_CURRENCY = RegexValidator(
    r"\A[A-Za-z][A-Za-z0-9 _-]{0,11}\Z", "Use letters, as in EUR or credits."
)


def _price(
    name: str, help_text: str = "", *, is_optional: bool = False
) -> "models.DecimalField[Any, Any]":
    return models.DecimalField(
        name,
        max_digits=14,
        decimal_places=PRICE_DECIMALS,
        null=is_optional,
        blank=is_optional,
        validators=[MinValueValidator(Decimal(0)), MaxValueValidator(MOST)],
        help_text=help_text,
    )


class ModelPrice(models.Model):
    """The price of a million tokens of a model, from a moment on, until the next price's.

    A job costs what is valid when it ends. What has begun to be valid stays as it was: a change is
    a new price.
    """

    model = models.ForeignKey(
        "models_registry.Model", on_delete=models.CASCADE, related_name="prices"
    )
    input = _price("per million prompt tokens")
    cached_input = _price(
        "per million cached prompt tokens",
        "Of a prompt's beginning that was computed before. Empty: as other prompt tokens.",
        is_optional=True,
    )
    output = _price("per million answer tokens")
    currency = models.CharField(
        max_length=12,
        default="USD",
        validators=[_CURRENCY],
        help_text="A label: nothing is converted.",
    )
    valid_from = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("model", "-valid_from")
        verbose_name = "price"
        constraints = (
            models.UniqueConstraint(fields=("model", "valid_from"), name="one_price_at_a_time"),
            models.CheckConstraint(
                condition=Q(input__gte=0)
                & Q(output__gte=0)
                & (Q(cached_input__isnull=True) | Q(cached_input__gte=0)),
                name="prices_are_not_negative",
            ),
        )

    def __str__(self) -> str:
        return f"{self.model} from {self.valid_from:%Y-%m-%d %H:%M}"

    @property
    def effective_cached_input(self) -> Decimal:
        """What a million cached prompt tokens cost."""
        cached: Decimal | None = self.cached_input
        return Decimal(self.input) if cached is None else cached

    @property
    def has_begun(self) -> bool:
        """Whether jobs may have been billed by it."""
        return self.pk is not None and self.valid_from <= timezone.now()

    def clean(self) -> None:
        """Refuse a price for what has been billed already."""
        now = timezone.now()
        if not self._state.adding or self.valid_from is None or self.valid_from >= now:
            return
        # A form takes its time to be filled in; meanwhile jobs were billed by the last price.
        if now - self.valid_from < timedelta(hours=1):
            self.valid_from = now
        else:
            raise ValidationError(
                {"valid_from": "What has ended is billed already: choose a later time."}
            )
