"""What people keep in the playground: chats, each a tree of messages, and their presets.

A chat only ever grows: an edited question or another answer is one more branch. So two windows of
one chat never overwrite each other; what is shown is a leaf, and the way up from it.
"""

import secrets

from django.conf import settings
from django.db import models

MAX_TITLE = 200


def make_chat_id() -> str:
    """Make an id that nobody guesses."""
    return secrets.token_hex(12)


class Chat(models.Model):
    """A chat of one user.

    ``leaves`` are the ids of the messages that its columns end with, one or two. ``revision``
    grows with every change, by which another window sees that it is behind.
    """

    id = models.CharField(primary_key=True, max_length=24, default=make_chat_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="chats"
    )
    title = models.CharField(max_length=MAX_TITLE, blank=True)
    # Unique, and most chats have none: who knows it reads the chat.
    share_token = models.CharField(max_length=64, unique=True, null=True, editable=False)  # noqa: DJ001
    leaves = models.JSONField(default=list, blank=True)
    revision = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-changed_at",)
        indexes = (models.Index(fields=("user", "-changed_at"), name="chats_of_a_user"),)

    def __str__(self) -> str:
        return self.title or "Untitled"


class Role(models.TextChoices):
    """Who speaks: tools answer the calls of the model."""

    USER = "user", "User"
    ASSISTANT = "assistant", "Assistant"
    TOOL = "tool", "Tool"


class MessageState(models.TextChoices):
    """Whether a message is whole. It moves once: from running to any other."""

    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class Message(models.Model):
    """One message. An answer names the run that tells it, and is written here when that has ended.

    ``request`` is what an answer was asked with, but for the messages before it; ``outcome`` what
    its end told: finish_reason, usage and timings, or an error. A tool's message has the
    ``call_id`` it answers.
    """

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="children"
    )
    role = models.CharField(max_length=16, choices=Role.choices)
    text = models.TextField(blank=True)
    reasoning = models.TextField(blank=True)
    calls = models.JSONField(default=list, blank=True)
    call_id = models.CharField(max_length=128, blank=True)
    state = models.CharField(max_length=16, choices=MessageState.choices, default=MessageState.DONE)
    run = models.CharField(max_length=64, blank=True, editable=False)
    request = models.JSONField(default=dict, blank=True)
    outcome = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("pk",)
        indexes = (
            models.Index(
                fields=("created_at",),
                condition=models.Q(state="running"),
                name="playground_answers_running",
            ),
        )
        constraints = (
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="playground_role_is_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=MessageState.values), name="playground_state_is_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.role} {self.pk}"


class Preset(models.Model):
    """A system prompt with settings, which a user gave a name."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="playground_presets"
    )
    name = models.CharField(max_length=100)
    settings = models.JSONField(default=dict)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("user", "name"), name="preset_name_of_a_user"),
        )

    def __str__(self) -> str:
        return self.name
