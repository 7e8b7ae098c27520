"""Begin, grow, rename, share and delete chats; end their answers, each once."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from llamero.api.run_names import make_run_id
from llamero.errors import InvalidValue, LlameroError
from llamero.playground.answers import Answer
from llamero.playground.models import MAX_TITLE, Chat, Message, MessageState, Preset, Role

MAX_CHATS = 10_000
MAX_MESSAGES = 2_000
MAX_PRESETS = 200
DELETED_AT_ONCE = 50
_TITLE_FROM_TEXT = 80


@dataclass(frozen=True, slots=True)
class NewTurn:
    """What is said, if anything, and how the answer is asked for.

    ``results`` are those of the tools that the parent calls: the id of each call, and a text.
    Without words and results the parent is answered once more. The answer is what the ``column``
    of ``num_columns`` side by side ends with from now on.
    """

    parent_id: int | None
    text: str | None
    results: Sequence[tuple[str, str]]
    request: Mapping[str, Any]
    column: int = 0
    num_columns: int = 1


def start_chat(*, user: User) -> Chat:
    """Begin a chat; raises LlameroError where the user has too many."""
    _check_room(Chat.objects.filter(user=user).count(), MAX_CHATS, "chats")
    return Chat.objects.create(user=user)


@transaction.atomic
def add_turn(*, chat: Chat, turn: NewTurn) -> list[Message]:
    """Add what is said, and an answer that is still to be told; give them in their order."""
    chat = _lock(chat)
    _check_room(chat.messages.count() + 1, MAX_MESSAGES, "messages of a chat")
    parent = _find_parent(chat, turn.parent_id)
    said = _say(chat, parent, turn)
    answer = Message.objects.create(
        chat=chat,
        parent=said[-1] if said else parent,
        role=Role.ASSISTANT,
        state=MessageState.RUNNING,
        run=make_run_id(),
        request=storable(turn.request),
    )
    # A column that was not there before begins where this one is.
    leaves = [*chat.leaves, answer.pk, answer.pk][: turn.num_columns]
    leaves[turn.column] = answer.pk
    chat.leaves = leaves
    chat.title = chat.title or storable(turn.text or "").strip()[:_TITLE_FROM_TEXT]
    _note_change(chat)
    return [*said, answer]


@transaction.atomic
def change_chat(*, chat: Chat, changes: Mapping[str, Any]) -> Chat:
    """Rename a chat, or note what its columns show."""
    chat = _lock(chat)
    if "title" in changes:
        chat.title = storable(changes["title"]).strip()[:MAX_TITLE]
    if "leaves" in changes:
        leaves = changes["leaves"]
        if chat.messages.filter(pk__in=leaves).count() != len(set(leaves)):
            raise InvalidValue("leaves", "leaves must be ids of messages of this chat.")
        chat.leaves = leaves
    _note_change(chat, touches="title" in changes)
    return chat


@transaction.atomic
def share_chat(*, chat: Chat, is_shared: bool) -> Chat:
    """Give a chat an address for others, or take it back; a new one never is an old one."""
    chat = _lock(chat)
    if is_shared != (chat.share_token is not None):
        chat.share_token = secrets.token_urlsafe(24) if is_shared else None
        _note_change(chat, touches=False)
    return chat


@transaction.atomic
def delete_chat(*, chat: Chat) -> None:
    """Delete a chat with all its messages."""
    _lock(chat).delete()


def delete_chats(*, user: User) -> int:
    """Delete all chats of a user; gives how many there were."""
    return _delete_in_parts(Chat.objects.filter(user=user))


def delete_chats_before(moment: datetime) -> int:
    """Delete the chats of everybody that have not changed since; gives how many there were."""
    return _delete_in_parts(Chat.objects.filter(changed_at__lt=moment))


def _delete_in_parts(chats: QuerySet[Chat]) -> int:
    """Delete chats, a part at a time: whoever else writes waits for one part alone."""
    num_deleted = 0
    while found := list(chats.order_by().values_list("pk", flat=True)[:DELETED_AT_ONCE]):
        chats.filter(pk__in=found).delete()
        num_deleted += len(found)
    return num_deleted


def end_answer(*, message: Message, answer: Answer) -> bool:
    """Write how an answer ended; False where somebody else did, or it was deleted."""
    running = Message.objects.filter(pk=message.pk, state=MessageState.RUNNING)
    with transaction.atomic():
        has_ended = running.update(
            state=answer.state,
            text=storable(answer.text),
            reasoning=storable(answer.reasoning),
            calls=storable(answer.calls),
            outcome=storable(answer.outcome),
        )
        if has_ended:
            Chat.objects.filter(pk=message.chat_id).update(
                revision=F("revision") + 1, changed_at=timezone.now()
            )
    return bool(has_ended)


def save_preset(*, user: User, name: str, settings: Mapping[str, Any]) -> Preset:
    """Keep settings under a name; the user's own of that name are replaced."""
    num_others = Preset.objects.filter(user=user).exclude(name=name).count()
    _check_room(num_others, MAX_PRESETS, "presets")
    preset, _ = Preset.objects.update_or_create(
        user=user, name=name, defaults={"settings": storable(settings)}
    )
    return preset


def delete_preset(*, user: User, preset_id: int) -> bool:
    """Delete a preset; False where the user has no such one."""
    num_deleted, _ = Preset.objects.filter(user=user, pk=preset_id).delete()
    return bool(num_deleted)


def storable(value: Any) -> Any:
    """Give text, or JSON with texts in it, as every database takes it: models write NUL, too."""
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, Mapping):
        return {storable(name): storable(item) for name, item in value.items()}
    return value


def _lock(chat: Chat) -> Chat:
    """Give a chat as it is now, and keep others from it: what one writes undoes nobody's change."""
    found = Chat.objects.select_for_update().filter(pk=chat.pk).first()
    if found is None:
        raise LlameroError(404, "not_found", "There is no such chat any more.")
    return found


def _find_parent(chat: Chat, parent_id: int | None) -> Message | None:
    if parent_id is None:
        return None
    parent = chat.messages.filter(pk=parent_id).first()
    if parent is None:
        raise InvalidValue("parent", "parent must be the id of a message of this chat.")
    if parent.state == MessageState.RUNNING:
        raise LlameroError(409, "still_running", "The answer before is not whole yet.")
    return parent


def _say(chat: Chat, parent: Message | None, turn: NewTurn) -> list[Message]:
    if turn.results:
        return _add_results(chat, parent, turn.results)
    if turn.text is not None:
        if parent is not None and parent.role != Role.ASSISTANT:
            raise InvalidValue("parent", "parent must be an answer.")
        text = storable(turn.text)
        return [Message.objects.create(chat=chat, parent=parent, role=Role.USER, text=text)]
    if parent is None or parent.role == Role.ASSISTANT:
        raise InvalidValue("parent", "parent must be what is to be answered.")
    return []


def _add_results(
    chat: Chat, parent: Message | None, results: Sequence[tuple[str, str]]
) -> list[Message]:
    calls = [] if parent is None else [call["id"] for call in parent.calls]
    if not calls or [call_id for call_id, _ in results] != calls:
        raise InvalidValue("results", "results must answer each call of the parent, in order.")
    said: list[Message] = []
    for call_id, text in results:
        parent = Message.objects.create(
            chat=chat, parent=parent, role=Role.TOOL, text=storable(text), call_id=call_id
        )
        said.append(parent)
    return said


def _note_change(chat: Chat, *, touches: bool = True) -> None:
    chat.revision += 1
    if touches:
        chat.changed_at = timezone.now()
    chat.save()


def _check_room(number: int, limit: int, what: str) -> None:
    if number >= limit:
        raise LlameroError(409, "too_many", f"There are {limit} {what} already; delete some.")
