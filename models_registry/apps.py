"""What Django needs to know of the registry."""

from django.apps import AppConfig


class ModelsRegistryConfig(AppConfig):
    """The models registry as an installed application."""

    name = "models_registry"
    verbose_name = "Models registry"
    default_auto_field = "django.db.models.BigAutoField"
