"""Which LoRA adapters a deployment loads beside its model."""

from django.core.exceptions import ValidationError
from django.db import models

from inference.protocol.replicas import LoraAdapter
from models_registry.models.deployment import Deployment
from models_registry.models.file import ModelFile
from models_registry.models.profile import between
from models_registry.names import MAX_NAME_LENGTH, validate_deployment_name

MAX_SCALE = 100.0


class DeploymentAdapter(models.Model):
    """One adapter of a deployment. Requests name it, or its place in the list from 0."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="adapters")
    file = models.ForeignKey(ModelFile, on_delete=models.PROTECT, related_name="adapter_uses")
    name = models.CharField(
        max_length=MAX_NAME_LENGTH,
        validators=[validate_deployment_name],
        help_text="What requests call it.",
    )
    scale = models.FloatField(
        default=0.0,
        validators=between(-MAX_SCALE, MAX_SCALE),
        help_text="How strongly it acts where a request says nothing. 0: only when asked for.",
    )
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("deployment", "position", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("deployment", "name"), name="adapter_name_is_unique_in_deployment"
            ),
        )

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse adapters where nothing is generated."""
        if self.deployment_id and not self.deployment.kind.is_generative:
            raise ValidationError("Only models that generate text take adapters.")

    @property
    def spec(self) -> LoraAdapter:
        """The adapter as the data plane takes it."""
        return LoraAdapter(
            name=self.name, file=str(self.file.path), sha256=self.file.sha256, scale=self.scale
        )
