"""How a model is run: its runtime profile, how many replicas, and how that goes."""

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from inference.protocol.replicas import ModelKind, RuntimeProfile
from models_registry.models.model import Model
from models_registry.models.version import ModelVersion
from models_registry.names import MAX_NAME_LENGTH, validate_deployment_name


class DeploymentState(models.TextChoices):
    """stopped -> pending -> loading -> ready; any -> failed (with a reason), stopped.

    Written by the control worker alone, from what the nodes report.
    """

    STOPPED = "stopped", "Stopped"
    PENDING = "pending", "Pending"
    LOADING = "loading", "Loading"
    READY = "ready", "Ready"
    FAILED = "failed", "Failed"


CACHE_TYPES = [("f16", "f16"), ("q8_0", "q8_0"), ("q4_0", "q4_0")]
POOLING_TYPES = [
    ("", "as the model says"),
    ("none", "none"),
    ("mean", "mean"),
    ("cls", "first token"),
    ("last", "last token"),
    ("rank", "rank"),
]
MAX_SLOTS = 256
# The native library counts KV cells in 31 bits.
MAX_CELLS = 2**31 - 1


def _exceeds(value: int | None, limit: int | None) -> bool:
    return value is not None and limit is not None and value > limit


def _between(low: float, high: float) -> list[MinValueValidator | MaxValueValidator]:
    return [MinValueValidator(low), MaxValueValidator(high)]


class Deployment(models.Model):
    """A model (its current version, or a pinned one) with a runtime profile.

    ``generation`` is bumped by every change of the profile or of the pinned version, and by a
    restart: a replica of an older generation is replaced.
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
    min_replicas = models.PositiveIntegerField(
        default=1, validators=_between(0, 64), help_text="How many replicas always run."
    )
    max_replicas = models.PositiveIntegerField(
        default=1, validators=_between(1, 64), help_text="How many replicas may run."
    )
    generation = models.PositiveIntegerField(default=1, editable=False)

    context_length = models.PositiveIntegerField(
        default=8192,
        validators=_between(8, 2**27),
        help_text="Tokens that one sequence may hold, prompt and answer together.",
    )
    num_slots = models.PositiveIntegerField(
        "slots", default=16, validators=_between(1, MAX_SLOTS), help_text="Sequences at once."
    )
    num_threads = models.PositiveIntegerField(
        "threads", default=0, validators=_between(0, 1024), help_text="0: all cores."
    )
    num_gpu_layers = models.IntegerField(
        "GPU layers",
        default=-1,
        validators=_between(-1, 4096),
        help_text="Layers to offload; -1: all, where there is a GPU.",
    )
    main_gpu = models.PositiveIntegerField("main GPU", default=0, validators=_between(0, 255))
    tensor_split = models.CharField(
        max_length=400,
        blank=True,
        help_text="Share of each GPU, as numbers with commas (3,1). Empty: by free memory.",
    )
    cache_type_k = models.CharField(
        "K cache type", max_length=8, choices=CACHE_TYPES, default="f16"
    )
    cache_type_v = models.CharField(
        "V cache type", max_length=8, choices=CACHE_TYPES, default="f16"
    )
    flash_attention = models.BooleanField(default=True)
    is_kv_unified = models.BooleanField(
        "unified KV cache",
        default=False,
        help_text="One cell pool for all slots instead of one per slot.",
    )
    step_token_budget = models.PositiveIntegerField(
        default=256,
        validators=_between(1, 65536),
        help_text="Tokens of one engine step at most. More suits GPUs; fewer free the slot of a "
        "cancelled prompt sooner.",
    )
    prefill_chunk = models.PositiveIntegerField(
        default=128,
        validators=_between(1, 65536),
        help_text="Prompt tokens that one step takes beside decoding sequences.",
    )
    pooling = models.CharField(max_length=8, blank=True, choices=POOLING_TYPES, default="")
    use_mmap = models.BooleanField("map the file", default=True)
    use_mlock = models.BooleanField("lock in memory", default=False)
    max_queue = models.PositiveIntegerField(
        default=512, validators=_between(0, 100_000), help_text="Waiting jobs; more get a 503."
    )
    job_timeout_seconds = models.FloatField(
        default=600.0, validators=_between(1, 86_400), help_text="From arrival to the last token."
    )

    state = models.CharField(
        max_length=16, choices=DeploymentState.choices, default=DeploymentState.PENDING
    )
    reason = models.TextField(blank=True)
    state_changed_at = models.DateTimeField(default=timezone.now, editable=False)
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
        """Check what no single field can: bounds of each other, GPU shares, the pinned version."""
        errors = self._find_bound_errors()
        try:
            _ = self.tensor_shares
        except ValueError:
            errors["tensor_split"] = "Numbers of at least 0 with commas between, like 3,1."
        pinned = self.pinned_version
        if pinned is not None and self.model_id and pinned.model_id != self.model_id:
            errors["pinned_version"] = "This version belongs to another model."
        if not self.flash_attention and self.cache_type_v != "f16":
            errors["cache_type_v"] = "Needs flash attention."
        if errors:
            raise ValidationError(errors)

    def _find_bound_errors(self) -> dict[str, str]:
        """Compare numbers with each other; those that failed on their own are None here."""
        errors: dict[str, str] = {}
        if _exceeds(self.min_replicas, self.max_replicas):
            errors["min_replicas"] = "Cannot be more than the maximum."
        if _exceeds(self.num_slots, self.step_token_budget):
            errors["step_token_budget"] = "Needs a token for each slot at least."
        if _exceeds(self.context_length, MAX_CELLS // (self.num_slots or 1)):
            errors["context_length"] = "Too much for this many slots."
        return errors

    @property
    def tensor_shares(self) -> tuple[float, ...]:
        """``tensor_split`` as numbers; raises ValueError for anything else."""
        shares = tuple(float(part) for part in self.tensor_split.split(",") if part.strip())
        if any(not 0 <= share < float("inf") for share in shares):
            raise ValueError(self.tensor_split)
        return shares

    @property
    def kind(self) -> ModelKind:
        """What the model is for."""
        return ModelKind(self.model.kind)

    @property
    def profile(self) -> RuntimeProfile:
        """The runtime profile as the data plane takes it."""
        return RuntimeProfile(
            tensor_split=self.tensor_shares,
            **{name: getattr(self, name) for name in PROFILE_COLUMNS},
        )


PROFILE_COLUMNS = tuple(name for name in RuntimeProfile.__struct_fields__ if name != "tensor_split")
PROFILE_FIELDS = (*PROFILE_COLUMNS, "tensor_split")
