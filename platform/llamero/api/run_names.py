"""What runs are called: an id that nobody guesses, and the conversation a client has it in."""

import re
import secrets

from django.http import HttpRequest

from llamero.errors import InvalidValue

CONVERSATION_HEADER = "X-Conversation-Id"
_CONVERSATION = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_RUN_ID = re.compile(r"run_[0-9a-f]{32}(\.[A-Za-z0-9._:-]{1,128})?")


def make_run_id(conversation: str | None = None) -> str:
    """Make an id; the conversation, if any, stands behind a dot."""
    name = f"run_{secrets.token_hex(16)}"
    return name if conversation is None else f"{name}.{conversation}"


def is_run_id(text: str) -> bool:
    """Whether a text may be a run's id."""
    return _RUN_ID.fullmatch(text) is not None


def conversation_of(run_id: str | None) -> str | None:
    """Give the conversation that a run is part of, if any."""
    return (run_id or "").partition(".")[2] or None


def read_conversation(request: HttpRequest) -> str | None:
    """Give the conversation that a client names in a header, if it does."""
    text = request.headers.get(CONVERSATION_HEADER)
    return text and check_conversation(text, CONVERSATION_HEADER)


def check_conversation(text: object, param: str) -> str:
    """Give the id of a conversation; raises InvalidValue if it is none."""
    if not isinstance(text, str) or not _CONVERSATION.fullmatch(text):
        kind = "1 to 128 letters, digits, dots, colons, hyphens or underscores"
        raise InvalidValue(param, f"{param} must be {kind}.")
    return text
