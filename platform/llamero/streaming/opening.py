"""How a start frame becomes a running chat: by the same code as a REST request."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from channels.db import database_sync_to_async

from inference.protocol.events import Event
from llamero.accounts.selectors import Caller
from llamero.api import generation
from llamero.api.generation import ChatRequest
from llamero.api.model_choice import GENERATIVE, choose_model
from llamero.api.openai.chat_request import read_chat_request
from llamero.api.run import GenerationRun
from llamero.errors import InvalidValue
from models_registry.selectors import ServedModel


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat that was accepted. Iterating gives its events, the last of them a terminal one."""

    model: str
    run: GenerationRun

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Give every event in turn."""
        async for _, event in self.run:
            yield event

    async def cancel(self) -> None:
        """Stop it; its end still comes."""
        await self.run.cancel()

    async def close(self) -> None:
        """Let it go, stopping it if it runs. Whoever opened a chat must close it."""
        await self.run.close()


async def open_chat(body: dict[str, Any], caller: Caller) -> Chat:
    """Validate, render and submit a chat; raises what the REST view would."""
    request, served = await database_sync_to_async(_prepare)(body, caller)
    run = await generation.open_chat(served=served, request=request, caller=caller)
    return Chat(served.id, run)


def _prepare(body: dict[str, Any], caller: Caller) -> tuple[ChatRequest, ServedModel]:
    request = read_chat_request(body | {"stream": True})
    if request.settings.num_choices != 1:
        raise InvalidValue("n", "n must be 1 on a socket: start several chats instead.")
    request = _add_system(request, body.get("system"))
    return request, choose_model(body.get("model"), caller, GENERATIVE)


def _add_system(request: ChatRequest, system: object) -> ChatRequest:
    """Put the ``system`` field, a socket's shorthand, before the messages."""
    if system is None:
        return request
    if not isinstance(system, str):
        raise InvalidValue("system", "system must be a string.")
    message = {"role": "system", "content": system}
    return replace(request, messages=(message, *request.messages))
