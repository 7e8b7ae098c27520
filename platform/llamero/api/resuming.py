"""Streams that outlive their connection: what is kept of them, and how their readers come back."""

import logging
import re
import secrets
from collections.abc import Sequence

import msgspec
from django.http import HttpRequest, StreamingHttpResponse

from inference.protocol.jobs import GenerationJob
from llamero import dispatch
from llamero.accounts.selectors import Caller
from llamero.api.anthropic.recipe import MessageRecipe
from llamero.api.generation import GenerationSettings, Keep
from llamero.api.native.completion_stream import CompletionRecipe
from llamero.api.numbering import NumberedChunks, read_place
from llamero.api.openai.recipes import ChatRecipe, TextRecipe
from llamero.api.pacing import AS_USUAL, Pacing
from llamero.api.run import GenerationRun
from llamero.api.sse import stream_kept_run, stream_run
from llamero.errors import InvalidValue, LlameroError
from models_registry.selectors import ServedModel

logger = logging.getLogger(__name__)

RESUMABLE_HEADER = "X-Llamero-Resumable"
IDEMPOTENCY_HEADER = "Idempotency-Key"
MAX_RESUMABLE_JOBS = 16
"""The id of an event has a number for each choice."""
_RUN_ID = re.compile(r"run_[0-9a-f]{32}")
_WORDS = {"": False, "false": False, "0": False, "true": True, "1": True}


class SocketRecipe(msgspec.Struct, frozen=True, tag="socket"):
    """A chat on a socket, whose frames need nothing but the model's name."""

    model: str


StreamRecipe = ChatRecipe | TextRecipe | CompletionRecipe | MessageRecipe
Recipe = StreamRecipe | SocketRecipe


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a run: its jobs in the order of its choices, and how it is told."""

    jobs: tuple[str, ...]
    model_pk: int
    recipe: Recipe


_decoder = msgspec.json.Decoder(KeptRun)


def make_run_id() -> str:
    """Make an id that nobody guesses."""
    return f"run_{secrets.token_hex(16)}"


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


def read_run_id(request: HttpRequest, settings: GenerationSettings, num_jobs: int) -> str | None:
    """Give the id of a new run if the client wants to be able to come back to its stream.

    So does one that names a key for its answer: asked again it gets the same stream.
    """
    header, word = RESUMABLE_HEADER, request.headers.get(RESUMABLE_HEADER, "").strip().lower()
    if word not in _WORDS:
        raise InvalidValue(header, f"{header} must be true or false.")
    if not _WORDS[word] and settings.stream and IDEMPOTENCY_HEADER in request.headers:
        header, word = IDEMPOTENCY_HEADER, "true"
    if not _WORDS[word] or settings.is_without_work:
        return None
    if not settings.stream:
        raise InvalidValue(header, f"{header} is only for stream: true.")
    if num_jobs > MAX_RESUMABLE_JOBS:
        message = (
            f"A stream with {header} may have at most {MAX_RESUMABLE_JOBS} prompts times choices."
        )
        raise InvalidValue(header, message)
    return make_run_id()


async def stream_answer(
    run: GenerationRun, recipe: StreamRecipe, run_id: str | None, pacing: Pacing = AS_USUAL
) -> StreamingHttpResponse:
    """Answer with a run's events, numbered if it may be resumed; closes the run."""
    writer = recipe.make_writer()
    if run_id is None:
        return await stream_run(run, writer, pacing)
    return await stream_kept_run(run, NumberedChunks(writer, recipe.num_jobs), run_id, pacing)


async def find_kept_run(run_id: str, caller: Caller) -> KeptRun:
    """Find a run of the caller; one that is unknown, expired or another's sounds the same."""
    document = None
    if _RUN_ID.fullmatch(run_id):
        document = await dispatch.get_dispatcher().find_run(run_id, caller.owner)
    kept = None if document is None else _read_kept(document)
    if kept is None or not caller.may_use(kept.model_pk):
        raise no_such_run()
    return kept


async def reopen_run(kept: KeptRun, caller: Caller) -> GenerationRun:
    """Follow every job of a run from its first event on."""
    dispatcher = dispatch.get_dispatcher()
    streams: list[dispatch.JobStream] = []
    try:
        for job in kept.jobs:
            stream = await dispatcher.attach(job, caller.owner)
            if stream is None:
                raise no_such_run()
            streams.append(stream)
    except BaseException:
        for stream in streams:
            await stream.close()
        raise
    return GenerationRun(streams, is_durable=True)


async def retell_run(
    run_id: str, caller: Caller, place: str = "", param: str = "Last-Event-ID"
) -> StreamingHttpResponse:
    """Answer with a kept stream after the event of this id, in the shape it began in.

    ``param`` is where the id comes from.
    """
    kept = await find_kept_run(run_id, caller)
    recipe = kept.recipe
    if isinstance(recipe, SocketRecipe):
        raise no_such_run()
    after = read_place(place, recipe.num_jobs, param)
    run = await reopen_run(kept, caller)
    writer = NumberedChunks(recipe.make_writer(), recipe.num_jobs, after)
    return await stream_kept_run(run, writer, run_id, is_resumed=True)


def _read_kept(document: bytes) -> KeptRun | None:
    """Read what was kept; what another version of the program wrote is as good as expired."""
    try:
        return _decoder.decode(document)
    except msgspec.DecodeError as error:
        logger.warning("A kept run cannot be read: %s", error)
        return None


def no_such_run() -> LlameroError:
    """Say that there is no such run, or none for this caller, or none any more."""
    return LlameroError(404, "run_not_found", "There is no such run, or it has expired.")
