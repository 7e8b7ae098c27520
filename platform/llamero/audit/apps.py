"""The app of the audit log."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Who changed what."""

    name = "llamero.audit"
    label = "audit"
    verbose_name = "Audit"

    def ready(self) -> None:
        """Note whatever is saved or deleted from now on."""
        from llamero.audit import signals

        signals.connect()
