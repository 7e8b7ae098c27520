"""The app of users and their keys."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Who may call."""

    name = "llamero.accounts"
    label = "accounts"
    verbose_name = "Access"
