"""How a frame becomes a chat that is followed: by the same code as a REST request."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from llamero.accounts.selectors import Caller
from llamero.api import chat as chats
from llamero.api.chat import ChatRequest
from llamero.api.loading import is_ready, watch_loading
from llamero.api.model_choice import GENERATIVE, choose_model
from llamero.api.openai.chat_request import read_chat_request
from llamero.api.resuming import (
    SocketRecipe,
    find_kept_run,
    is_run_kept,
    make_keep,
    no_such_run,
    reopen_run,
)
from llamero.api.run import GenerationRun
from llamero.api.run_names import make_run_id
from llamero.api.threads import SLOW_FIELDS, run_in_thread, slow_threads
from llamero.api.turn import TurnFormat
from llamero.errors import InvalidValue, LlameroError
from llamero.request_ids import note_route
from models_registry.selectors import ServedModel

# What the ledger calls the route of chats on a socket.
ROUTE = "/ws/v1/chat"


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat that was accepted. Whoever opened it must close its run.

    ``run_id`` is what resumes it, if it may be; ``is_resumed`` tells that it began elsewhere.
    """

    model: str
    run: GenerationRun
    turn: TurnFormat
    run_id: str | None = None
    is_resumed: bool = False


TellLoading = Callable[[str, float], Awaitable[None]]


async def open_chat(
    body: dict[str, Any],
    caller: Caller,
    tell_loading: TellLoading,
    *,
    is_resumable: bool,
    run_id: str | None = None,
) -> Chat:
    """Validate, render and submit a chat; raises what the REST view would.

    ``tell_loading`` is told the model's name and its loaded share while it is being loaded. A
    ``run_id`` of the caller's own choice must be new to them.
    """
    if run_id is not None and await is_run_kept(run_id, caller):
        message = "This run has begun already: resume it."
        raise LlameroError(409, "run_in_use", message, param="run")
    note_route(ROUTE)
    threads = slow_threads if any(name in body for name in SLOW_FIELDS) else None
    request, served = await run_in_thread(partial(_prepare, body, caller), threads)
    if not await is_ready(served.deployment):
        async for progress in watch_loading(served.deployment):
            await tell_loading(served.id, progress)
    chat = await chats.prepare_chat(served=served, request=request)
    if is_resumable:
        run_id = run_id or make_run_id()
    keep = make_keep(run_id, served, caller, SocketRecipe(served.id, chat.turn))
    run = await chats.open_chat(chat=chat, caller=caller, keep=keep)
    return Chat(served.id, run, chat.turn, run_id)


async def resume_chat(run_id: str, caller: Caller) -> Chat:
    """Find a chat of the caller that began on a socket, wherever that was."""
    kept = await find_kept_run(run_id, caller)
    if not isinstance(kept.recipe, SocketRecipe):
        raise no_such_run()
    recipe, run = kept.recipe, await reopen_run(kept, caller)
    return Chat(recipe.model, run, recipe.turn, run_id, is_resumed=True)


def _prepare(body: dict[str, Any], caller: Caller) -> tuple[ChatRequest, ServedModel]:
    served = choose_model(body.get("model"), caller, GENERATIVE)
    request = read_chat_request(body | {"stream": True}, served.request_defaults)
    if request.settings.num_choices != 1:
        raise InvalidValue("n", "n must be 1 on a socket: start several chats instead.")
    return _add_system(request, body.get("system")), served


def _add_system(request: ChatRequest, system: object) -> ChatRequest:
    """Put the ``system`` field, a socket's shorthand, before the messages."""
    if system is None:
        return request
    if not isinstance(system, str):
        raise InvalidValue("system", "system must be a string.")
    message = {"role": "system", "content": system}
    return replace(request, messages=(message, *request.messages))
