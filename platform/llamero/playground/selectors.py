"""Find chats and presets: only ever those of one user, but for what was shared."""

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from llamero.accounts.callers import user_owner
from llamero.playground.models import Chat, Message, MessageState, Preset

PAGE_SIZE = 50


def list_chats(user: User, *, search: str = "", before: str = "") -> list[Chat]:
    """List a page of a user's chats, the last changed first; one more than a page tells of more.

    ``search`` is looked for in titles and messages. ``before`` is the id of the last one known.
    """
    chats = Chat.objects.filter(user=user)
    if search:
        says_it = Message.objects.filter(chat__user=user, text__icontains=search)
        chats = chats.filter(Q(title__icontains=search) | Q(pk__in=says_it.values("chat")))
    last = chats.filter(pk=before).values_list("changed_at", flat=True).first() if before else None
    if last is not None:
        chats = chats.filter(Q(changed_at__lt=last) | Q(changed_at=last, pk__lt=before))
    return list(chats.order_by("-changed_at", "-pk")[: PAGE_SIZE + 1])


def find_chat(user: User, chat_id: str) -> Chat | None:
    """Find a chat of a user."""
    return Chat.objects.filter(user=user, pk=chat_id).first()


def find_shared_chat(token: str) -> Chat | None:
    """Find the chat that is shared under this token."""
    return Chat.objects.filter(share_token=token, user__is_active=True).first()


def list_messages(chat: Chat) -> Sequence[Message]:
    """List all messages of a chat, parents before their children."""
    return list(chat.messages.order_by("pk"))


def list_shown_messages(chat: Chat) -> list[list[Message]]:
    """List what the columns of a chat show: of each the way from its first message to its leaf."""
    by_id = {message.pk: message for message in list_messages(chat)}
    columns = []
    for leaf in chat.leaves:
        path, message = [], by_id.get(leaf)
        while message is not None:
            path.append(message)
            message = by_id.get(message.parent_id) if message.parent_id else None
        columns.append(path[::-1])
    return columns


def find_message(user: User, message_id: int) -> Message | None:
    """Find a message of a user."""
    return Message.objects.filter(chat__user=user, pk=message_id).first()


def list_running(before: datetime, limit: int) -> list[tuple[Message, str]]:
    """List answers that ran at a time, each with the owner of its run; the oldest first."""
    running: QuerySet[Message] = Message.objects.filter(
        state=MessageState.RUNNING, created_at__lt=before
    )
    rows = running.select_related("chat").order_by("created_at")[:limit]
    return [(message, user_owner(message.chat.user_id)) for message in rows]


def list_presets(user: User) -> list[Preset]:
    """List a user's presets by name."""
    return list(Preset.objects.filter(user=user))
