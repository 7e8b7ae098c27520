"""Server-sent events: a run as a stream of bytes, an error never dressed up as an end."""

import logging
from collections.abc import AsyncIterator, Sequence
from time import monotonic
from typing import Protocol

import msgspec
from django.http import StreamingHttpResponse

from inference.protocol.events import Done, Failed, Tokens
from llamero.api.errors import describe_exception, error_bytes, from_failed
from llamero.api.run import ChoiceEvent, GenerationRun
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
PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
_TELLING = (Tokens, Done, Failed)


class ChunkWriter(Protocol):
    """Turns events into an API's own chunks. Called once per token: it must be cheap."""

    is_native: bool

    def start(self) -> bytes:
        """Give what comes before the first event."""

    def write(self, event: ChoiceEvent) -> bytes:
        """Give the chunks of an event, or nothing."""

    def end(self) -> bytes:
        """Give what comes after the last choice has ended."""


async def stream_run(run: GenerationRun, writer: ChunkWriter) -> StreamingHttpResponse:
    """Answer with a run's events; closes the run when the stream ends, however it ends.

    Raises what fails before there is anything to send.
    """
    try:
        first = await _first_events(run)
        for _, event in first:
            if type(event) is Failed:
                raise from_failed(event)
    except BaseException:
        await run.close()
        raise
    return respond(_body(run, writer, first))


async def stream_kept_run(
    run: GenerationRun, writer: ChunkWriter, run_id: str, *, is_resumed: bool = False
) -> StreamingHttpResponse:
    """Answer with the events of a run that may be resumed: at once, for the client to know its id.

    So whatever fails is told as an event, after all that came before it.
    """
    try:
        first = await run.next_events(REPLAY_SECONDS) if is_resumed else []
    except BaseException:
        await run.close()
        raise
    return respond(_body(run, writer, first), run_id)


def respond(body: AsyncIterator[bytes], run_id: str | None = None) -> StreamingHttpResponse:
    """Answer with a stream of events; ``run_id`` is what it may be resumed by."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    if run_id is not None:
        headers[RUN_HEADER] = run_id
    return StreamingHttpResponse(body, content_type="text/event-stream", headers=headers)


def data_line(document: object) -> bytes:
    """Give one event that carries a JSON document."""
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def error_event(error: LlameroError, *, is_native: bool) -> bytes:
    """Give the event that ends a stream badly."""
    return b"data: " + error_bytes(error, is_native=is_native) + b"\n\n"


async def _first_events(run: GenerationRun) -> list[ChoiceEvent]:
    """Wait for the first event worth sending, but not for ever."""
    found: list[ChoiceEvent] = []
    ends = monotonic() + PATIENCE_SECONDS
    while not run.is_finished and (left := ends - monotonic()) > 0:
        found += await run.next_events(left)
        if any(isinstance(event, _TELLING) for _, event in found):
            break
    return found


async def _body(
    run: GenerationRun, writer: ChunkWriter, events: list[ChoiceEvent]
) -> AsyncIterator[bytes]:
    """Send what arrives as it arrives; runs for as long as the client stays."""
    failure: LlameroError | None = None
    try:
        head = writer.start() if events else writer.start() + _sign_of_life(run)
        while failure is None:
            chunks, failure = _write_all(writer, events)
            if failure is None and run.is_finished:
                yield head + chunks + writer.end()
                return
            if head or chunks:
                yield head + chunks
            head = b""
            if failure is None:
                events = await run.next_events(QUEUE_SECONDS if run.is_waiting else PING_SECONDS)
                if not events and not run.is_finished:
                    yield _sign_of_life(run)
    except Exception as error:
        failure = describe_exception(error)
    finally:
        await run.close()
    assert failure is not None
    yield error_event(failure, is_native=writer.is_native)


def _sign_of_life(run: GenerationRun) -> bytes:
    """Give a comment: the place of a run that waits, or a ping."""
    place = run.queue_place
    if place is None:
        return PING
    wait = "" if place.wait_seconds is None else f" wait={place.wait_seconds:.1f}"
    return f": queued position={place.position}{wait}\n\n".encode()


def _write_all(
    writer: ChunkWriter, events: Sequence[ChoiceEvent]
) -> tuple[bytes, LlameroError | None]:
    """Write events up to a failure, which ends the whole stream."""
    chunks: list[bytes] = []
    for choice_event in events:
        event = choice_event.event
        if type(event) is Failed:
            return b"".join(chunks), from_failed(event)
        chunks.append(writer.write(choice_event))
    return b"".join(chunks), None
