"""The control plane as a Django application: it keeps what admins say of nodes."""

from django.apps import AppConfig


class ControlConfig(AppConfig):
    """The ``llamero.control`` application."""

    name = "llamero.control"
    label = "control"
    verbose_name = "Nodes"
    default_auto_field = "django.db.models.BigAutoField"
