"""The app of the playground."""

from django.apps import AppConfig


class PlaygroundConfig(AppConfig):
    """Chats of people in a browser."""

    name = "llamero.playground"
    label = "playground"
    verbose_name = "Playground"
