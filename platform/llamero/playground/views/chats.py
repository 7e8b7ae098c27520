"""Chats: list, read, change, grow, settle."""

from typing import Any

from django.http import HttpRequest

from llamero.playground.documents import describe_chat, describe_message
from llamero.playground.json_views import json_view, not_found, session_caller, user_of
from llamero.playground.models import Chat
from llamero.playground.requests import read_changes, read_refusal, read_turn
from llamero.playground.selectors import PAGE_SIZE, find_chat, find_message, list_chats
from llamero.playground.selectors import list_messages as list_messages_of
from llamero.playground.services import (
    add_turn,
    change_chat,
    delete_chat,
    delete_chats,
    share_chat,
    start_chat,
)
from llamero.playground.settling import settle_now


def _find(request: HttpRequest, chat_id: str) -> Chat:
    chat = find_chat(user_of(request), chat_id)
    if chat is None:
        raise not_found("chat")
    return chat


def _list(request: HttpRequest) -> dict[str, Any]:
    search = request.GET.get("search", "").replace("\0", "").strip()[:200]
    before = request.GET.get("before", "").replace("\0", "")
    chats = list_chats(user_of(request), search=search, before=before)
    shown = [describe_chat(chat) for chat in chats[:PAGE_SIZE]]
    return {"chats": shown, "has_more": len(chats) > PAGE_SIZE}


def _delete_all(request: HttpRequest) -> None:
    delete_chats(user=user_of(request))


def _start(request: HttpRequest) -> dict[str, Any]:
    return describe_chat(start_chat(user=user_of(request)))


def _read(request: HttpRequest, chat_id: str) -> dict[str, Any]:
    chat = _find(request, chat_id)
    messages = [describe_message(message) for message in list_messages_of(chat)]
    return describe_chat(chat) | {"messages": messages}


def _change(request: HttpRequest, chat_id: str) -> dict[str, Any]:
    chat, changes = _find(request, chat_id), read_changes(request)
    if "shared" in changes:
        chat = share_chat(chat=chat, is_shared=changes["shared"])
    if "title" in changes or "leaves" in changes:
        chat = change_chat(chat=chat, changes=changes)
    return describe_chat(chat)


def _delete(request: HttpRequest, chat_id: str) -> None:
    delete_chat(chat=_find(request, chat_id))


def _grow(request: HttpRequest, chat_id: str) -> dict[str, Any]:
    added = add_turn(chat=_find(request, chat_id), turn=read_turn(request))
    messages = [describe_message(message) for message in added]
    return describe_chat(added[-1].chat) | {"messages": messages}


def _settle(request: HttpRequest, message_id: int) -> dict[str, Any]:
    message = find_message(user_of(request), message_id)
    if message is None:
        raise not_found("message")
    settle_now(message, session_caller(request), read_refusal(request))
    message.refresh_from_db()
    return describe_chat(message.chat) | {"message": describe_message(message)}


chats = json_view(get=_list, post=_start, delete=_delete_all)
chat = json_view(get=_read, patch=_change, delete=_delete)
turns = json_view(post=_grow)
settle = json_view(post=_settle)
