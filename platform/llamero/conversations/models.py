"""Stored responses: whose they are, what became of them, and their packed contents."""

from django.db import models
from django.utils import timezone


class ResponseState(models.TextChoices):
    """What became of a response. It moves once: from in progress to any other.

    Whether one in progress waits or runs is known to the broker alone.
    """

    IN_PROGRESS = "in_progress", "In progress"
    COMPLETED = "completed", "Completed"
    INCOMPLETE = "incomplete", "Incomplete"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class StoredResponse(models.Model):
    """A response and all that it takes to go on with it, or to tell it again.

    ``previous`` is no foreign key: a conversation whose beginning was deleted must not seem whole.
    ``question`` and ``outcome`` are packed (see ``packing``): text that databases would refuse in
    columns of their own, such as NUL, is legal in JSON. ``job`` is the durable job behind it, and
    empty where nothing goes on without its client. ``num_bytes`` is what both take, packed.
    """

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    owner = models.CharField(max_length=64, editable=False)
    api_key = models.ForeignKey(
        "accounts.ApiKey", null=True, on_delete=models.CASCADE, editable=False, related_name="+"
    )
    model = models.ForeignKey(
        "models_registry.Model",
        null=True,
        on_delete=models.SET_NULL,
        editable=False,
        related_name="+",
    )
    previous = models.CharField(max_length=64, blank=True, editable=False)
    state = models.CharField(max_length=16, choices=ResponseState.choices, editable=False)
    is_background = models.BooleanField(default=False, editable=False)
    job = models.CharField(max_length=32, blank=True, editable=False)
    question = models.BinaryField()
    outcome = models.BinaryField(null=True)
    num_bytes = models.PositiveBigIntegerField("bytes", default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    ended_at = models.DateTimeField(null=True, editable=False)
    used_at = models.DateTimeField(default=timezone.now, db_index=True, editable=False)

    class Meta:
        ordering = ("-created_at",)
        verbose_name = "stored response"
        indexes = (
            # Whole rows of what is counted for each new one: the table itself is not read.
            models.Index(
                fields=("owner", "used_at", "num_bytes", "state"), name="responses_of_owner"
            ),
            models.Index(
                fields=("created_at",),
                condition=models.Q(state="in_progress"),
                name="responses_in_progress",
            ),
        )
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=ResponseState.values), name="response_state_is_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state="in_progress", outcome__isnull=True)
                | (~models.Q(state="in_progress") & models.Q(outcome__isnull=False)),
                name="ended_response_has_outcome",
            ),
        )

    def __str__(self) -> str:
        return self.id

    @property
    def is_ended(self) -> bool:
        """Whether it is what it will stay."""
        return self.state != ResponseState.IN_PROGRESS
