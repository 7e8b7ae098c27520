"""Which blobs are stored, and which versions use them."""

from pathlib import Path

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

from models_registry.models.version import ModelVersion


class ModelFile(models.Model):
    """A content-addressed blob, stored once however many versions use it."""

    sha256 = models.CharField(
        "SHA-256",
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"\A[0-9a-f]{64}\Z", "Not a SHA-256 in lower-case hex.")],
    )
    size_bytes = models.BigIntegerField("size in bytes")
    # Against whose quota it counts; empty for files that came by an operator's hand.
    owner = models.CharField(max_length=64, blank=True, default="", db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(size_bytes__gte=0), name="file_size_is_not_negative"
            ),
        )

    def __str__(self) -> str:
        return self.sha256[:12]

    @property
    def path(self) -> Path:
        """Where the blob lies: always made from its hash, never from what a user typed."""
        return Path(settings.HOME) / "models" / self.sha256[:2] / self.sha256


class FileRole(models.TextChoices):
    """What a file is to its version. Shards are weights with positions 0, 1, 2…"""

    WEIGHTS = "weights", "Weights"
    MMPROJ = "mmproj", "Multimodal projector"
    LORA = "lora", "LoRA adapter"
    DRAFT = "draft", "Draft model"


class VersionFile(models.Model):
    """One file's place in a version. ``display_name`` is for people and is never made a path."""

    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="files")
    file = models.ForeignKey(ModelFile, on_delete=models.PROTECT, related_name="uses")
    role = models.CharField(max_length=16, choices=FileRole.choices, default=FileRole.WEIGHTS)
    position = models.PositiveIntegerField(default=0)
    display_name = models.CharField(max_length=255, blank=True)

    class Meta:
        ordering = ("version", "role", "position")
        constraints = (
            models.UniqueConstraint(
                fields=("version", "role", "position"), name="one_file_per_place_of_a_version"
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=FileRole.values), name="file_role_is_known"
            ),
        )

    def __str__(self) -> str:
        return self.display_name or str(self.file)
