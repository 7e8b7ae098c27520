"""Which models exist, and under which names clients ask for them."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from inference.protocol.replicas import ModelKind
from models_registry.names import MAX_NAME_LENGTH, normalize_name, validate_published_name

KIND_CHOICES = [(kind.value, kind.name.capitalize()) for kind in ModelKind]


class NameField(models.CharField):  # type: ignore[type-arg]
    """A published name, folded to its stored form when it is validated (lookups stay exact)."""

    def clean(self, value: Any, model_instance: models.Model | None) -> Any:
        """Fold, then validate."""
        return super().clean(normalize_name(str(value or "")), model_instance)


class Model(models.Model):
    """A registry entry. What it serves is its current version, through its deployments."""

    slug = NameField(
        "published id",
        max_length=MAX_NAME_LENGTH,
        unique=True,
        validators=[validate_published_name],
        help_text="The id that clients send as “model”.",
    )
    title = models.CharField(max_length=200, help_text="How people call it.")
    kind = models.CharField(
        max_length=16,
        choices=KIND_CHOICES,
        default=ModelKind.CHAT.value,
        help_text="Which API it answers.",
    )
    description = models.TextField(
        blank=True, help_text="For people. Markdown: headings, lists, tables, links, code."
    )
    fallback = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="fallback_for",
        verbose_name="fallback model",
        help_text="Answers while no deployment of this model can: all have failed, wait for room, "
        "or are stopped. A key that is limited to some models must be allowed both.",
    )
    owned_by = models.CharField(
        max_length=100, default="llamero", help_text="Shown as “owned_by” in the model list."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("slug",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(kind__in=[kind.value for kind in ModelKind]),
                name="model_kind_is_known",
            ),
        )

    def __str__(self) -> str:
        return str(self.slug)

    def clean(self) -> None:
        """Keep slugs apart from every alias, of this model too; check the fallback."""
        errors: dict[str, str] = {}
        if ModelAlias.objects.filter(name=self.slug).exists():
            errors["slug"] = "This name is already an alias of a model."
        if self.fallback is not None and (problem := self._judge_fallback(self.fallback)):
            errors["fallback"] = problem
        if errors:
            raise ValidationError(errors)

    def _judge_fallback(self, fallback: "Model") -> str:
        """Say why another model cannot answer in the place of this one; empty if it can."""
        if fallback.pk == self.pk:
            return "A model cannot stand in for itself."
        ours, theirs = ModelKind(self.kind), ModelKind(fallback.kind)
        if ours is theirs or (ours.is_generative and theirs.is_generative):
            return ""
        return f"It is of kind {theirs}, this model of kind {ours}: its answers would not do."


class ModelAlias(models.Model):
    """Another name for a model."""

    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="aliases")
    name = NameField(
        max_length=MAX_NAME_LENGTH,
        unique=True,
        validators=[validate_published_name],
        help_text="Clients may send this instead of the published id.",
    )

    class Meta:
        ordering = ("name",)
        verbose_name_plural = "model aliases"

    def __str__(self) -> str:
        return str(self.name)

    def clean(self) -> None:
        """Keep aliases apart from every slug."""
        if Model.objects.filter(slug=self.name).exists():
            raise ValidationError({"name": "This name is already the published id of a model."})
