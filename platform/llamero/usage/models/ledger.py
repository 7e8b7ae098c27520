"""The ledger: one row for each job that has ended."""

from typing import Any

from django.db import models

from llamero.usage.money import MoneyField

NO_ONE = 0
"""In place of the number of a key, user, team, model or version, where there was none."""


def id_field() -> "models.BigIntegerField[Any, Any]":
    return models.BigIntegerField(default=NO_ONE, editable=False)


def name_field(length: int) -> "models.CharField[Any, Any]":
    return models.CharField(max_length=length, blank=True, editable=False)


def count_field() -> "models.BigIntegerField[Any, Any]":
    return models.BigIntegerField(default=0, editable=False)


class LedgerRow(models.Model):
    """What one job used, for whom and where. Written once, never changed.

    Keys, users, teams and models are numbers and names as they were: what was used stays used when
    they are deleted. ``ttft_ms`` is the time from a job's arrival to its first token or
    vector. ``cost`` is empty where the model had no price.
    """

    job = models.CharField(max_length=64, unique=True, editable=False)
    request_id = name_field(128)
    route = name_field(128)
    key_id = id_field()
    key_name = name_field(100)
    user_id = id_field()
    user_name = name_field(150)
    team_id = id_field()
    team_name = name_field(100)
    model_id = id_field()
    model_name = name_field(128)
    version = id_field()
    deployment = name_field(128)
    node = name_field(128)
    replica = name_field(160)
    num_prompt_tokens = count_field()
    num_cached_tokens = count_field()
    num_completion_tokens = count_field()
    num_reasoning_tokens = count_field()
    ttft_ms = models.BigIntegerField("time to first token (ms)", null=True, editable=False)
    duration_ms = models.BigIntegerField("duration (ms)", default=0, editable=False)
    finish_reason = models.CharField(max_length=16, editable=False)
    error_code = name_field(64)
    cost = MoneyField(null=True, editable=False)
    currency = name_field(12)
    began_at = models.DateTimeField(editable=False)
    ended_at = models.DateTimeField(db_index=True, editable=False)

    class Meta:
        ordering = ("-ended_at", "-pk")
        verbose_name = "ledger row"
        indexes = (
            *tuple(
                models.Index(fields=(f"{name}_id", "ended_at"), name=f"ledger_by_{name}")
                for name in ("key", "user", "team", "model")
            ),
            models.Index(fields=("request_id",), name="ledger_by_request"),
        )

    def __str__(self) -> str:
        return self.job


class LedgerWriter(models.Model):
    """One row, locked by whoever writes the ledger: so a job is looked for and added in one go."""

    class Meta:
        verbose_name = "ledger writer"

    def __str__(self) -> str:
        return "ledger writer"
