"""The app of the ledger."""

from django.apps import AppConfig


class UsageConfig(AppConfig):
    """What was used, and what it costs."""

    name = "llamero.usage"
    label = "usage"
    verbose_name = "Usage"
