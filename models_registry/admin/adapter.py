"""The adapters of a deployment, on its page."""

from typing import Any

from django.http import HttpRequest
from unfold.admin import TabularInline

from models_registry.models import DeploymentAdapter


class AdapterInline(TabularInline):  # type: ignore[misc]
    """Names, order and scales; ``manage.py import_adapter`` adds one."""

    model = DeploymentAdapter
    extra = 0
    verbose_name_plural = "LoRA adapters (their files are brought in as those of the model)"
    fields = ("position", "name", "scale", "file")
    readonly_fields = ("file",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Leave adding to imports, which check the file."""
        return False
