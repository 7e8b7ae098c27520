"""Chats and messages as the playground's page gets them."""

from typing import Any

from llamero.playground.models import Chat, Message, Preset


def describe_chat(chat: Chat) -> dict[str, Any]:
    """Describe a chat without its messages."""
    return {
        "id": chat.pk,
        "title": chat.title,
        "changed_at": chat.changed_at.isoformat(),
        "revision": chat.revision,
        "leaves": chat.leaves,
        "shared_at": chat.share_token and f"/shared/{chat.share_token}",
    }


def describe_message(message: Message) -> dict[str, Any]:
    """Describe a message to its owner."""
    return describe_shared_message(message) | {
        "parent": message.parent_id,
        "state": message.state,
        "run": message.run,
        "request": message.request,
    }


def describe_shared_message(message: Message) -> dict[str, Any]:
    """Describe a message to whom it was shared with: what is seen, and no system prompt."""
    return {
        "id": message.pk,
        "role": message.role,
        "text": message.text,
        "reasoning": message.reasoning,
        "calls": message.calls,
        "call_id": message.call_id,
        "request": {"model": message.request.get("model", "")},
        "outcome": message.outcome,
    }


def describe_preset(preset: Preset) -> dict[str, Any]:
    """Describe a preset."""
    return {"id": preset.pk, "name": preset.name, "settings": preset.settings}
