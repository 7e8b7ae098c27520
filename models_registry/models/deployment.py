"""How a model is run: its runtime profile, how many replicas, and how that goes."""

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

from inference.protocol.replicas import ModelKind
from models_registry.models.draft import judge_draft
from models_registry.models.model import Model
from models_registry.models.profile import ProfileColumns, between
from models_registry.models.profile_rules import exceeds, find_contradictions, find_misfits
from models_registry.models.request_defaults import RequestDefaultColumns, find_idle_defaults
from models_registry.models.version import ModelVersion
from models_registry.names import MAX_NAME_LENGTH, validate_deployment_name


class DeploymentState(models.TextChoices):
    """stopped -> pending -> loading -> ready <-> sleeping; any -> failed (with a reason), stopped.

    Sleeping: it runs no replica, and the next request has one loaded.

    Written by the control worker alone, from what the nodes report.
    """

    STOPPED = "stopped", "Stopped"
    PENDING = "pending", "Pending"
    LOADING = "loading", "Loading"
    READY = "ready", "Ready"
    SLEEPING = "sleeping", "Sleeping"
    FAILED = "failed", "Failed"


class Deployment(ProfileColumns, RequestDefaultColumns):
    """A model (its current version, or a pinned one) with a profile and defaults of requests.

    ``generation`` is bumped by every change of the profile or of the pinned version, and by a
    restart: a replica of an older generation is replaced. One that ``is_draining`` gets no new
    requests, and is disabled when it has answered those it has. ``last_error`` outlives recovery.
    """

    slug = models.CharField(
        "name",
        max_length=MAX_NAME_LENGTH,
        unique=True,
        validators=[validate_deployment_name],
        help_text="Names its queue; cannot be changed later.",
    )
    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="deployments")
    pinned_version = models.ForeignKey(
        ModelVersion,
        on_delete=models.RESTRICT,
        null=True,
        blank=True,
        related_name="pinning_deployments",
        help_text="Leave empty to follow the model's current version.",
    )
    enabled = models.BooleanField(default=True, help_text="Whether it should run at all.")
    share = models.PositiveIntegerField(
        "share of requests",
        default=1,
        validators=between(0, 1000),
        help_text="Not per cent, but a number in relation to those of the model's other "
        "deployments: with 9 and 1, one of ten callers goes to the second. A caller or a "
        "conversation stays where it is. 0: it stands by, and serves when the others cannot. A "
        "model's first deployment begins with 1, further ones with 0: nothing changes before you "
        "say so.",
    )
    is_draining = models.BooleanField(default=False, editable=False)
    min_replicas = models.PositiveIntegerField(
        default=1,
        validators=between(0, 64),
        help_text="How many replicas always run. With 0 it sleeps when nobody uses it, makes room "
        "for others, and is loaded by the next request; otherwise it is pinned.",
    )
    max_replicas = models.PositiveIntegerField(
        default=1,
        validators=between(1, 64),
        help_text="How many replicas may run while requests wait.",
    )
    idle_timeout_seconds = models.PositiveIntegerField(
        "sleeps after",
        default=900,
        validators=between(0, 30 * 24 * 3600),
        help_text="Seconds without a request after which a deployment without a minimum sleeps; "
        "0: only when others need its memory.",
    )
    target_ttft_seconds = models.FloatField(
        "wanted time to the first token",
        default=10.0,
        validators=between(0, 3600),
        help_text="Seconds. Replicas are added, up to the maximum, while requests wait and most "
        "first tokens take longer; 0: only the queue's length counts.",
    )
    ignores_memory = models.BooleanField(
        "run without room",
        default=False,
        help_text="Run it where the estimate says that there is not enough memory. Weights that do "
        "not fit are read from disk again and again, and the system may end the replica.",
    )
    text_retention_days = models.PositiveIntegerField(
        "keep texts for",
        default=0,
        validators=between(0, 365),
        help_text="Days for which prompts and answers are kept, for those who may read them. "
        "0: they are never stored.",
    )
    generation = models.PositiveIntegerField(default=1, editable=False)

    draft_version = models.ForeignKey(
        ModelVersion,
        on_delete=models.RESTRICT,
        null=True,
        blank=True,
        related_name="drafting_deployments",
        verbose_name="draft model",
        help_text="A small model with the same vocabulary that guesses ahead. It is loaded beside "
        "the model when speculation asks it.",
    )

    state = models.CharField(
        max_length=16, choices=DeploymentState.choices, default=DeploymentState.PENDING
    )
    reason = models.TextField(blank=True)
    state_changed_at = models.DateTimeField(default=timezone.now, editable=False)
    last_error = models.TextField(blank=True, editable=False)
    last_error_log = models.TextField("end of the log", blank=True, editable=False)
    last_error_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("slug",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=DeploymentState.values),
                name="deployment_state_is_known",
            ),
            models.CheckConstraint(
                condition=models.Q(min_replicas__lte=models.F("max_replicas")),
                name="min_replicas_within_max",
            ),
        )

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        """Check what no single field can: each against the others, and against the model."""
        kind, version = (self.kind, self.version) if self.model_id else (None, None)
        if errors := self.find_conflicts(kind, version):
            raise ValidationError(errors)

    def find_conflicts(
        self, kind: ModelKind | None, version: ModelVersion | None
    ) -> dict[str, str]:
        """Give the fields that cannot be so with a model and a version, which may be to come.

        Without a kind nothing is known of the model.
        """
        errors: dict[str, str] = {}
        if exceeds(self.min_replicas, self.max_replicas):
            errors["min_replicas"] = f"Cannot be more than the maximum, {self.max_replicas}."
        if kind is not None:
            errors |= find_contradictions(self, kind)
            errors |= find_idle_defaults(self, kind)
            errors |= self._find_version_errors(version)
        return errors

    def _find_version_errors(self, version: ModelVersion | None) -> dict[str, str]:
        """Check the pinned version, the draft, and the profile against a version's header."""
        errors: dict[str, str] = {}
        pinned = self.pinned_version
        if pinned is not None and pinned.model_id != self.model_id:
            errors["pinned_version"] = "This version belongs to another model."
        facts = version.facts if version else {}
        if self.speculation == "draft" and (problem := judge_draft(self.draft_version, version)):
            errors["draft_version"] = problem
        return errors | find_misfits(self, facts)

    @property
    def version(self) -> ModelVersion | None:
        """The version that runs: the pinned one, else the model's current one (a query)."""
        return self.pinned_version or self.model.versions.filter(is_current=True).first()

    @property
    def kind(self) -> ModelKind:
        """What the model is for."""
        return ModelKind(self.model.kind)
