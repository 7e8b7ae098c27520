"""Server-sent events: a run as a stream of bytes, an error never dressed up as an end."""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import NamedTuple, Protocol

import msgspec
from django.http import StreamingHttpResponse

from inference.protocol.events import Done, Failed, Progress, Tokens
from llamero.api.errors import describe_exception, error_bytes, from_failed
from llamero.api.pacing import AS_USUAL, Pacing
from llamero.api.paths import Dialect
from llamero.api.run import ChoiceEvent, QueuePlace
from llamero.errors import LlameroError

logger = logging.getLogger(__name__)

# Proxies cut a silent stream after 15 to 60 seconds.
PING_SECONDS = 10.0
# How often a request that waits for a slot is told its place.
QUEUE_SECONDS = 2.0
# How long headers wait for the first token: until then an error is still a plain HTTP error.
PATIENCE_SECONDS = 10.0
# How long a stream that is resumed waits for what was told before, to begin with it.
REPLAY_SECONDS = 1.0
RUN_HEADER = "X-Llamero-Run"
SILENT_SECONDS = 3600.0
DONE = b"data: [DONE]\n\n"
_TELLING = (Tokens, Done, Failed)


class EventSource(Protocol):
    """A run as a stream reads it: see GenerationRun."""

    @property
    def is_finished(self) -> bool:
        """Whether every choice has ended, and its end was given."""

    @property
    def is_waiting(self) -> bool:
        """Whether nothing has been told yet."""

    @property
    def queue_place(self) -> QueuePlace | None:
        """Where the run waits; None once any of its choices has begun."""

    async def next_events(self, timeout: float) -> list[ChoiceEvent]:
        """Give what has arrived, waiting for it; nothing after so many seconds of silence."""

    async def close(self) -> None:
        """Let go of it."""


class ChunkWriter(Protocol):
    """Turns events into an API's own chunks. Called once per token: it must be cheap."""

    def start(self) -> bytes:
        """Give what comes before the first event."""

    def write(self, event: ChoiceEvent) -> bytes:
        """Give the chunks of an event, or nothing."""

    def end(self) -> bytes:
        """Give what comes after the last choice has ended."""

    def fail(self, error: LlameroError) -> bytes:
        """Give what comes last where a stream ends badly."""


class Part(NamedTuple):
    """What a stream has to send by now; it ends there with a failure, or as it should if whole."""

    text: bytes
    failure: LlameroError | None = None
    is_whole: bool = False


async def stream_run(
    run: EventSource, writer: ChunkWriter, pacing: Pacing = AS_USUAL
) -> StreamingHttpResponse:
    """Answer with a run's events; closes the run when the stream ends, however it ends.

    Raises what fails before there is anything to send.
    """
    try:
        events = await _first_events(run, pacing)
        for _, event in events:
            if type(event) is Failed:
                raise from_failed(event)
        first = _write_all(run, writer, events, writer.start())
    except BaseException:
        await run.close()
        raise
    return respond(_body(run, writer, first, pacing))


async def stream_kept_run(
    run: EventSource,
    writer: ChunkWriter,
    run_id: str | None,
    pacing: Pacing = AS_USUAL,
    *,
    is_resumed: bool = False,
) -> StreamingHttpResponse:
    """Answer with the events of a run that may be resumed: at once, for the client to know its id.

    So whatever fails is told as an event, after all that came before it. Only of one that is
    resumed what was told before is looked at first: raises InvalidValue where the run has ended,
    and the writer was to begin behind its end.
    """
    pacing = replace(pacing, comment_end=b"\n")
    try:
        first = await _catch_up(run, writer) if is_resumed else Part(writer.start())
    except BaseException:
        await run.close()
        raise
    return respond(_body(run, writer, first, pacing), run_id)


def respond(body: AsyncIterator[bytes], run_id: str | None = None) -> StreamingHttpResponse:
    """Answer with a stream of events; ``run_id`` is what it may be resumed by."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    if run_id is not None:
        headers[RUN_HEADER] = run_id
    return StreamingHttpResponse(body, content_type="text/event-stream", headers=headers)


def data_line(document: object) -> bytes:
    """Give one event that carries a JSON document."""
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def openai_error(error: LlameroError) -> bytes:
    """Give the event that ends a stream of OpenAI's text APIs badly."""
    return b"data: " + error_bytes(error, Dialect.OPENAI) + b"\n\n"


def native_error(error: LlameroError) -> bytes:
    """Give the event that ends a stream of llama-server's routes badly."""
    return b"data: " + error_bytes(error, Dialect.LLAMA_SERVER) + b"\n\n"


async def _first_events(run: EventSource, pacing: Pacing) -> list[ChoiceEvent]:
    """Wait for the first event worth sending, but not for ever."""
    telling = (*_TELLING, Progress) if pacing.tells_progress else _TELLING
    found: list[ChoiceEvent] = []
    ends = monotonic() + PATIENCE_SECONDS
    while not run.is_finished and (left := ends - monotonic()) > 0:
        found += await run.next_events(left)
        if any(isinstance(event, telling) for _, event in found):
            break
    return found


async def _catch_up(run: EventSource, writer: ChunkWriter) -> Part:
    """Write up to the first that the client lacks, or for a moment."""
    part = Part(writer.start())
    ends = monotonic() + REPLAY_SECONDS
    while not part.text and not part.failure and not part.is_whole:
        if (left := ends - monotonic()) <= 0:
            break
        part = _write_all(run, writer, await run.next_events(left))
    return part


async def _body(
    run: EventSource, writer: ChunkWriter, first: Part, pacing: Pacing
) -> AsyncIterator[bytes]:
    """Send what arrives as it arrives; runs for as long as the client stays."""
    failure: LlameroError | None = None
    part = first
    try:
        if run.is_waiting or first == Part(b""):
            part = first._replace(text=first.text + _sign_of_life(run, pacing))
        while True:
            if part.text:
                yield part.text
            if part.is_whole:
                return
            if part.failure is not None:
                failure = part.failure
                break
            events = await run.next_events(_patience(run, pacing))
            if not events and not run.is_finished and pacing.may_ping:
                yield _sign_of_life(run, pacing)
            part = _write_all(run, writer, events)
    except Exception as error:
        failure = describe_exception(error)
    finally:
        await run.close()
    assert failure is not None
    yield writer.fail(failure)


def _patience(run: EventSource, pacing: Pacing) -> float:
    """Tell how long to wait for events before a comment; a place in the queue changes soon."""
    if not pacing.may_ping:
        return SILENT_SECONDS
    if run.is_waiting:
        return QUEUE_SECONDS
    return PING_SECONDS if pacing.ping_seconds is None else pacing.ping_seconds


def _sign_of_life(run: EventSource, pacing: Pacing) -> bytes:
    """Give a comment: the place of a run that waits, or a ping; nothing where none is wanted."""
    if not pacing.may_ping:
        return b""
    place = run.queue_place
    if place is None:
        return b": ping" + pacing.comment_end
    wait = "" if place.wait_seconds is None else f" wait={place.wait_seconds:.1f}"
    return f": queued position={place.position}{wait}".encode() + pacing.comment_end


def _write_all(
    run: EventSource, writer: ChunkWriter, events: Sequence[ChoiceEvent], head: bytes = b""
) -> Part:
    """Write events, and the end behind the last of all; a failure ends the whole stream."""
    chunks = [head]
    for choice_event in events:
        event = choice_event.event
        if type(event) is Failed:
            return Part(b"".join(chunks), from_failed(event))
        chunks.append(writer.write(choice_event))
    if run.is_finished:
        chunks.append(writer.end())
    return Part(b"".join(chunks), is_whole=run.is_finished)
