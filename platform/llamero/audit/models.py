"""The audit log: written once, read by operators, changed by nobody."""

from typing import Any

from django.conf import settings
from django.db import models


class Source(models.TextChoices):
    """By which way a change came."""

    PAGE = "page", "Page"
    API = "api", "API"
    COMMAND = "command", "Command"
    PROGRAM = "program", "Program"


class Action(models.TextChoices):
    """What became of the thing."""

    CREATED = "created", "Created"
    CHANGED = "changed", "Changed"
    DELETED = "deleted", "Deleted"


class Change(models.Model):
    """One change of one thing.

    Names are kept beside what they point to, so that the log outlives users and things. ``before``
    and ``after`` hold the fields that differ, by name.
    """

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    actor_name = models.CharField("who", max_length=200, blank=True)
    source = models.CharField(max_length=16, choices=Source.choices)
    address = models.CharField(max_length=64, blank=True)
    action = models.CharField(max_length=16, choices=Action.choices)
    kind = models.CharField(max_length=100)
    object_id = models.CharField(max_length=64)
    object_text = models.CharField("what", max_length=200)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        ordering = ("-pk",)
        indexes = (
            models.Index(fields=("kind", "object_id"), name="changes_of_a_thing"),
            models.Index(fields=("actor", "-at"), name="changes_by_somebody"),
        )

    def __str__(self) -> str:
        return f"{self.get_action_display()} {self.object_text}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write it, once."""
        if self.pk is not None:
            raise TypeError("What is in the audit log stays as it is.")
        super().save(*args, **kwargs)
