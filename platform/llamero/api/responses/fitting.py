"""Conversations that are longer than a model's context: refused, or cut at their beginning."""

from dataclasses import replace

from llamero import dispatch
from llamero.api.chat import ChatRequest, PreparedChat, prepare_chat
from llamero.api.responses.messages import Message
from models_registry.selectors import ServedModel

# What a cut leaves free for the answer: a share of the context, or as much as was asked for.
_ROOM_SHARE = 4
_MOST_ROOM_SHARE = 2


async def prepare_fitting_chat(
    *, served: ServedModel, request: ChatRequest, is_truncated: bool
) -> PreparedChat:
    """Render a conversation; ``is_truncated`` drops its oldest turns until it fits.

    What the system said first stays, and so does the last turn. One that is still too long is left
    for others to refuse. More goes than must, so that the next turns begin alike.
    """
    chat = await prepare_chat(served=served, request=request)
    if not is_truncated:
        return chat
    facts = await dispatch.get_dispatcher().facts(served.deployment)
    context = facts.context_length
    asked = request.settings.max_tokens or context // _ROOM_SHARE
    goal = context - min(asked, context // _MOST_ROOM_SHARE)
    while len(chat.prompt) >= context:
        excess = (len(chat.prompt) - goal) / len(chat.prompt)
        messages = drop_oldest(request.messages, excess)
        if len(messages) == len(request.messages):
            break
        request = replace(request, messages=messages)
        chat = await prepare_chat(served=served, request=request)
    return chat


def drop_oldest(messages: tuple[Message, ...], share: float) -> tuple[Message, ...]:
    """Drop the oldest turns: at least one, and about a share of all text, but never the last.

    A turn begins with what the user says: answers to calls are never left without them.
    """
    num_first = next((i for i, one in enumerate(messages) if one["role"] != "system"), 0)
    starts = [i for i, one in enumerate(messages) if i > num_first and one["role"] == "user"]
    if not starts:
        return messages
    sizes = [len(str(message)) for message in messages]
    enough = share * sum(sizes)
    cut = next((i for i in starts if sum(sizes[num_first:i]) >= enough), starts[-1])
    return messages[:num_first] + messages[cut:]
