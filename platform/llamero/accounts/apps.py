"""The app of users and their keys."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Who may call."""

    name = "llamero.accounts"
    label = "accounts"
    verbose_name = "Access"

    def ready(self) -> None:
        """Have gateways told of what happens to keys and their owners."""
        from llamero.accounts import signals

        signals.connect()
