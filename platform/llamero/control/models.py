"""What admins say of nodes, kept across restarts, and the tokens that nodes fetch files with."""

from django.db import models
from django.utils import timezone


class Scheduling(models.TextChoices):
    """What may run on a node. An admin moves it: any to any.

    Cordoned: what runs stays, nothing new comes. Draining: what runs goes elsewhere, too.
    """

    OPEN = "open", "Open"
    CORDONED = "cordoned", "Cordoned"
    DRAINING = "draining", "Draining"


class Node(models.Model):
    """A machine that has reported once. What it has and runs now is in its heartbeat."""

    name = models.CharField(max_length=255, unique=True, editable=False)
    scheduling = models.CharField(
        max_length=16, choices=Scheduling.choices, default=Scheduling.OPEN, editable=False
    )
    first_seen_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(scheduling__in=Scheduling.values),
                name="node_scheduling_is_known",
            ),
        )

    def __str__(self) -> str:
        return self.name


class NodeToken(models.Model):
    """What lets worker machines fetch model files. ``digest`` is an HMAC of the whole token."""

    name = models.CharField(max_length=100, help_text="Which machine, or machines, it is for.")
    prefix = models.CharField(max_length=8, unique=True, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    pepper = models.PositiveSmallIntegerField(editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="True to the minute."
    )
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} ({self.shown_prefix})"

    @property
    def shown_prefix(self) -> str:
        """The part of the token that may be shown."""
        return f"lln_{self.prefix}_…"
