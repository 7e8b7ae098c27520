"""Files and batches as the database knows them; what files hold lies on disk (see ``store``)."""

from django.db import models
from django.utils import timezone


class Purpose(models.TextChoices):
    """What a file is for: sent in to become a batch, or made by one."""

    BATCH = "batch", "Requests"
    BATCH_OUTPUT = "batch_output", "Answers"


class StoredFile(models.Model):
    """A file of one owner. It never changes, and nobody finds it once it has expired."""

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    owner = models.CharField(max_length=64, editable=False)
    api_key = models.ForeignKey(
        "accounts.ApiKey", null=True, on_delete=models.CASCADE, editable=False, related_name="+"
    )
    purpose = models.CharField(max_length=16, choices=Purpose.choices, editable=False)
    filename = models.CharField(max_length=255, editable=False)
    num_bytes = models.PositiveBigIntegerField("bytes", editable=False)
    sha256 = models.CharField("SHA-256", max_length=64, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(db_index=True, editable=False)

    class Meta:
        ordering = ("-created_at", "-id")
        verbose_name = "file"
        indexes = (models.Index(fields=("owner", "created_at", "id"), name="files_of_owner"),)

    def __str__(self) -> str:
        return f"{self.filename} ({self.id})"


class BatchState(models.TextChoices):
    """How far a batch is, in OpenAI's words."""

    VALIDATING = "validating", "Validating"
    FAILED = "failed", "Failed"
    IN_PROGRESS = "in_progress", "In progress"
    FINALIZING = "finalizing", "Finalizing"
    COMPLETED = "completed", "Completed"
    EXPIRED = "expired", "Expired"
    CANCELLING = "cancelling", "Cancelling"
    CANCELLED = "cancelled", "Cancelled"


OPEN_STATES = (
    BatchState.VALIDATING,
    BatchState.IN_PROGRESS,
    BatchState.FINALIZING,
    BatchState.CANCELLING,
)
"""Those that somebody still has to do something about."""


class Batch(models.Model):
    """Requests of one file, run one by one where there is room.

    Progress: ``done`` are ranges of line numbers (first, last) whose answers are written, and
    ``parts`` tells how much of which working file counts. Both are written together, and only by
    who has the current ``claim``: whoever runs a batch raises it, so that an earlier runner that
    is not quite dead can write no more.
    """

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    owner = models.CharField(max_length=64, editable=False)
    api_key = models.ForeignKey(
        "accounts.ApiKey", null=True, on_delete=models.CASCADE, editable=False, related_name="+"
    )
    # What the token allowed that made it; None: all that the key may.
    grant = models.JSONField(null=True, editable=False)
    endpoint = models.CharField(max_length=64, editable=False)
    model = models.CharField(max_length=255, blank=True, editable=False)
    metadata = models.JSONField(default=dict, editable=False)
    state = models.CharField(
        max_length=16,
        choices=BatchState.choices,
        default=BatchState.VALIDATING,
        editable=False,
    )
    errors = models.JSONField(default=list, editable=False)
    input_file = models.CharField(max_length=64, editable=False)
    output_file = models.CharField(max_length=64, blank=True, editable=False)
    error_file = models.CharField(max_length=64, blank=True, editable=False)
    output_seconds = models.PositiveIntegerField(null=True, editable=False)

    num_total = models.PositiveIntegerField(default=0, editable=False)
    num_completed = models.PositiveIntegerField(default=0, editable=False)
    num_failed = models.PositiveIntegerField(default=0, editable=False)
    usage = models.JSONField(default=dict, editable=False)
    done = models.JSONField(default=list, editable=False)
    parts = models.JSONField(default=list, editable=False)
    claim = models.PositiveIntegerField(default=0, editable=False)

    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(editable=False)
    in_progress_at = models.DateTimeField(null=True, editable=False)
    finalizing_at = models.DateTimeField(null=True, editable=False)
    completed_at = models.DateTimeField(null=True, editable=False)
    failed_at = models.DateTimeField(null=True, editable=False)
    expired_at = models.DateTimeField(null=True, editable=False)
    cancelling_at = models.DateTimeField(null=True, editable=False)
    cancelled_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ("-created_at", "-id")
        verbose_name_plural = "batches"
        indexes = (
            models.Index(fields=("owner", "created_at", "id"), name="batches_of_owner"),
            models.Index(
                fields=("created_at",),
                condition=models.Q(state__in=OPEN_STATES),
                name="batches_open",
            ),
        )
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=BatchState.values), name="batch_state_is_known"
            ),
        )

    def __str__(self) -> str:
        return self.id

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to do something about it."""
        return self.state in OPEN_STATES
