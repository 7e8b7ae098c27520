"""Which sets of files a model has had, and how far each has come."""

from django.db import models

from models_registry.models.model import Model


class VersionState(models.TextChoices):
    """importing -> inspecting -> probing -> ready; any of the first three -> rejected.

    ready -> quarantined when a stored file has lost its hash; quarantined -> ready when it has it.
    """

    IMPORTING = "importing", "Importing"
    INSPECTING = "inspecting", "Inspecting"
    PROBING = "probing", "Probing"
    READY = "ready", "Ready"
    REJECTED = "rejected", "Rejected"
    QUARANTINED = "quarantined", "Quarantined"


UNDER_WAY = (VersionState.IMPORTING, VersionState.INSPECTING, VersionState.PROBING)
MAY_BE_CURRENT = (VersionState.READY, VersionState.QUARANTINED)
NEEDS_REASON = (VersionState.REJECTED, VersionState.QUARANTINED)


class ModelVersion(models.Model):
    """An immutable set of files under one model. ``facts``: what its header says."""

    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(
        max_length=16, choices=VersionState.choices, default=VersionState.IMPORTING
    )
    reason = models.TextField(
        blank=True, help_text="Why it is in this state, if that is no good one."
    )
    facts = models.JSONField(default=dict, blank=True)
    # Which build of the engine it was probed by: another one has to probe it again.
    probed_build = models.CharField(max_length=64, blank=True, default="", editable=False)
    is_current = models.BooleanField("current", default=False)
    made_current_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("model", "-number")
        constraints = (
            models.UniqueConstraint(fields=("model", "number"), name="version_number_is_unique"),
            models.UniqueConstraint(
                fields=("model",),
                condition=models.Q(is_current=True),
                name="one_current_version_per_model",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=VersionState.values), name="version_state_is_known"
            ),
            models.CheckConstraint(
                condition=models.Q(is_current=False) | models.Q(state__in=MAY_BE_CURRENT),
                name="current_version_was_ready",
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=NEEDS_REASON) | ~models.Q(reason=""),
                name="bad_version_has_a_reason",
            ),
        )

    def __str__(self) -> str:
        return f"{self.model.slug} v{self.number}"
