"""Streams that outlive their connection: what is kept of them, and how their readers come back."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from django.http import HttpRequest, StreamingHttpResponse

from inference.protocol.jobs import GenerationJob
from llamero import dispatch
from llamero.accounts.selectors import Caller
from llamero.api.anthropic.recipe import MessageRecipe
from llamero.api.generation import GenerationSettings, Keep
from llamero.api.native.completion_stream import CompletionRecipe
from llamero.api.numbering import NumberedChunks, SkippedBytes, read_place
from llamero.api.openai.recipes import ChatRecipe, TextRecipe
from llamero.api.pacing import AS_USUAL, Pacing
from llamero.api.responses.writer import KeptResponse
from llamero.api.run import GenerationRun
from llamero.api.run_names import (
    CONVERSATION_HEADER,
    conversation_of,
    is_run_id,
    make_run_id,
    read_conversation,
)
from llamero.api.sse import stream_kept_run, stream_run
from llamero.api.turn import TurnFormat
from llamero.errors import InvalidValue, LlameroError
from models_registry.selectors import ServedModel

logger = logging.getLogger(__name__)

RESUMABLE_HEADER = "X-Llamero-Resumable"
IDEMPOTENCY_HEADER = "Idempotency-Key"
# Bytes of a conversation's stream are counted, so that it has no comments that come as they like.
NO_PINGS = -1.0
MAX_RESUMABLE_JOBS = 16
"""The id of an event has a number for each choice."""
_WORDS = {"": False, "false": False, "0": False, "true": True, "1": True}


class SocketRecipe(msgspec.Struct, frozen=True, tag="socket"):
    """A chat on a socket, whose frames need no more than the model's name and its ways."""

    model: str
    turn: TurnFormat


StreamRecipe = ChatRecipe | TextRecipe | CompletionRecipe | MessageRecipe
Recipe = StreamRecipe | SocketRecipe | KeptResponse


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a run: its jobs in the order of its choices, and how it is told."""

    jobs: tuple[str, ...]
    model_pk: int
    recipe: Recipe


_decoder = msgspec.json.Decoder(KeptRun)


def make_keep(
    run_id: str | None, served: ServedModel, caller: Caller, recipe: Recipe
) -> Keep | None:
    """Give what makes a run resumable by its id, for whoever opens it; nothing without an id."""
    if run_id is None:
        return None

    async def keep(jobs: Sequence[GenerationJob]) -> None:
        kept = KeptRun(jobs=tuple(job.id for job in jobs), model_pk=served.model_pk, recipe=recipe)
        document = msgspec.json.encode(kept)
        deadline = max(job.deadline for job in jobs)
        await dispatch.get_dispatcher().keep_run(run_id, caller.owner, document, deadline)

    return keep


def wants_resuming(request: HttpRequest) -> bool:
    """Read the header by which a client says that it may come back."""
    word = request.headers.get(RESUMABLE_HEADER, "").strip().lower()
    if word not in _WORDS:
        raise InvalidValue(RESUMABLE_HEADER, f"{RESUMABLE_HEADER} must be true or false.")
    return _WORDS[word]


def read_run_id(request: HttpRequest, settings: GenerationSettings, num_jobs: int) -> str | None:
    """Give the id of a new run if the client wants to be able to come back to its stream.

    So does one that names a key for its answer: asked again it gets the same stream. And one that
    names a conversation: it comes back by that name.
    """
    header, is_wanted = RESUMABLE_HEADER, wants_resuming(request)
    if not is_wanted and settings.stream and IDEMPOTENCY_HEADER in request.headers:
        header, is_wanted = IDEMPOTENCY_HEADER, True
    conversation = read_conversation(request) if settings.stream else None
    if conversation is not None:
        header, is_wanted = CONVERSATION_HEADER, True
    if not is_wanted or settings.is_without_work:
        return None
    if not settings.stream:
        raise InvalidValue(header, f"{header} is only for stream: true.")
    if num_jobs > MAX_RESUMABLE_JOBS:
        message = (
            f"A stream with {header} may have at most {MAX_RESUMABLE_JOBS} prompts times choices."
        )
        raise InvalidValue(header, message)
    return make_run_id(conversation)


async def stream_answer(
    run: GenerationRun,
    recipe: StreamRecipe,
    run_id: str | None,
    caller: Caller,
    pacing: Pacing = AS_USUAL,
) -> StreamingHttpResponse:
    """Answer with a run's events, numbered if it may be resumed; closes the run."""
    writer = recipe.make_writer()
    if run_id is None:
        return await stream_run(run, writer, pacing)
    if (conversation := conversation_of(run_id)) is not None:
        await _go_on(run, run_id, conversation, caller)
        pacing = replace(pacing, ping_seconds=NO_PINGS)
    return await stream_kept_run(run, NumberedChunks(writer, recipe.num_jobs), run_id, pacing)


async def find_kept_run(run_id: str, caller: Caller) -> KeptRun:
    """Find a run of the caller; one that is unknown, expired or another's sounds the same."""
    document = None
    if is_run_id(run_id):
        document = await dispatch.get_dispatcher().find_run(run_id, caller.owner)
    kept = None if document is None else read_kept_run(document)
    if kept is None or not caller.may_use(kept.model_pk):
        raise no_such_run()
    return kept


async def is_run_kept(run_id: str, caller: Caller) -> bool:
    """Whether the caller has a run of this id."""
    return await dispatch.get_dispatcher().find_run(run_id, caller.owner) is not None


async def reopen_run(kept: KeptRun, caller: Caller) -> GenerationRun:
    """Follow every job of a run from its first event on."""
    dispatcher = dispatch.get_dispatcher()
    streams: list[dispatch.JobStream] = []
    try:
        for job in kept.jobs:
            stream = await dispatcher.attach(job, caller.owner)
            if stream is None:
                raise no_such_run()
            stream.reader_ends_at = caller.ends_at
            streams.append(stream)
    except BaseException:
        for stream in streams:
            await stream.close()
        raise
    return GenerationRun(streams, is_durable=True)


async def retell_run(
    run_id: str,
    caller: Caller,
    place: str = "",
    param: str = "Last-Event-ID",
    *,
    num_skipped: int = 0,
) -> StreamingHttpResponse:
    """Answer with a kept stream after the event of this id, in the shape it began in.

    ``param`` is where the id comes from. ``num_skipped`` bytes of what is left are not told.
    """
    kept = await find_kept_run(run_id, caller)
    recipe = kept.recipe
    if isinstance(recipe, (SocketRecipe, KeptResponse)):
        raise no_such_run()
    after = read_place(place, recipe.num_jobs, param)
    if num_skipped and recipe.num_jobs > 1:
        message = "Several choices come in no fixed order: name the last event by Last-Event-ID."
        raise InvalidValue("from", message)
    run = await reopen_run(kept, caller)
    numbered = NumberedChunks(recipe.make_writer(), recipe.num_jobs, after, param)
    writer = SkippedBytes(numbered, num_skipped)
    pacing = (
        AS_USUAL if conversation_of(run_id) is None else replace(AS_USUAL, ping_seconds=NO_PINGS)
    )
    return await stream_kept_run(run, writer, run_id, pacing, is_resumed=True)


async def retell_response(run_id: str, caller: Caller) -> StreamingHttpResponse:
    """Answer with the events of a response that is not stored, from the first on."""
    kept = await find_kept_run(run_id, caller)
    if not isinstance(kept.recipe, KeptResponse):
        raise no_such_run()
    run = await reopen_run(kept, caller)
    return await stream_kept_run(run, kept.recipe.recipe.make_writer(), None, is_resumed=True)


async def _go_on(run: GenerationRun, run_id: str, conversation: str, caller: Caller) -> None:
    """Have a conversation go on with a new run; raises, and stops it, while its last one runs."""
    conversations = dispatch.get_dispatcher().conversations
    try:
        if await conversations.go_on(conversation, caller.owner, run_id):
            return
        message = (
            "The last stream of this conversation still goes on. Resume it or end it, "
            f"or send another {CONVERSATION_HEADER}."
        )
        raise LlameroError(
            409,
            "conversation_busy",
            message,
            param=CONVERSATION_HEADER,
            error_type="invalid_request_error",
        )
    except BaseException:
        await run.cancel()
        await run.close()
        raise


def read_kept_run(document: bytes) -> KeptRun | None:
    """Read what was kept; what another version of the program wrote is as good as expired."""
    try:
        return _decoder.decode(document)
    except msgspec.DecodeError as error:
        logger.warning("A kept run cannot be read: %s", error)
        return None


def no_such_run() -> LlameroError:
    """Say that there is no such run, or none for this caller, or none any more."""
    return LlameroError(404, "run_not_found", "There is no such run, or it has expired.")
