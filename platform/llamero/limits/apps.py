"""The app of limits."""

from django.apps import AppConfig


class LimitsConfig(AppConfig):
    """How much."""

    name = "llamero.limits"
    label = "limits"
    verbose_name = "Limits"
