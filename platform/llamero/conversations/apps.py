"""The app of stored responses."""

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    """What clients had stored."""

    name = "llamero.conversations"
    label = "conversations"
    verbose_name = "Conversations"
    default_auto_field = "django.db.models.BigAutoField"
