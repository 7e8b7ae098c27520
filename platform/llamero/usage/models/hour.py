"""Sums of the ledger, so that reports need not read all of it."""

from django.db import models

from llamero.usage.models.ledger import count_field, id_field, name_field
from llamero.usage.money import MoneyField

SUBJECTS = ("key_id", "user_id", "team_id", "model_id", "currency")
COUNTS = (
    "num_jobs",
    "num_failed",
    "num_cancelled",
    "num_prompt_tokens",
    "num_cached_tokens",
    "num_completion_tokens",
    "num_reasoning_tokens",
    "cost",
    "num_begun",
    "ttft_ms",
    "duration_ms",
)


class UsageHour(models.Model):
    """What one key used of one model in one hour, by the ends of its jobs.

    Written with the rows that it sums. ``ttft_ms`` is the sum over the ``num_begun`` jobs that had
    a first token.
    """

    hour = models.DateTimeField(editable=False)
    key_id = id_field()
    user_id = id_field()
    team_id = id_field()
    model_id = id_field()
    currency = name_field(12)
    num_jobs = count_field()
    num_failed = count_field()
    num_cancelled = count_field()
    num_prompt_tokens = count_field()
    num_cached_tokens = count_field()
    num_completion_tokens = count_field()
    num_reasoning_tokens = count_field()
    cost = MoneyField(default=0, editable=False)
    num_begun = count_field()
    ttft_ms = count_field()
    duration_ms = count_field()

    class Meta:
        ordering = ("-hour",)
        verbose_name = "usage report"
        constraints = (
            models.UniqueConstraint(fields=("hour", *SUBJECTS), name="usage_of_an_hour_once"),
        )
        indexes = tuple(
            models.Index(fields=(f"{name}_id", "hour"), name=f"hours_by_{name}")
            for name in ("key", "user", "team", "model")
        )

    def __str__(self) -> str:
        return f"usage of {self.hour:%Y-%m-%d %H:00}"
