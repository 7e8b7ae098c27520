"""The jobs of one request, followed together until each has ended."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason

logger = logging.getLogger(__name__)

_LOST = Failed(ErrorCode.ENGINE_LOST, "The worker was lost. Please try again.", is_retryable=True)
_BROKEN = Failed(ErrorCode.INTERNAL_ERROR, "Something went wrong on the server.")
_CANCELLED = Failed(ErrorCode.INTERNAL_ERROR, "The request was cancelled on the server.")


class JobStream(Protocol):
    """The events of one submitted job."""

    def __aiter__(self) -> AsyncIterator[tuple[int, Event]]:
        """Give each event with its number; ends after Done or Failed."""

    async def cancel(self) -> None:
        """Stop the job."""

    async def close(self) -> None:
        """Let go of the job, stopping it if it has not ended."""


class ChoiceEvent(NamedTuple):
    """An event of the choice of this index (prompt-major where there are several prompts)."""

    choice: int
    event: Event


class GenerationRun:
    """Merges the streams of a request's jobs. Whoever opens a run must close it, on every path."""

    def __init__(self, streams: Sequence[JobStream]) -> None:
        self._streams = tuple(streams)
        self._ready: list[ChoiceEvent] = []
        self._waiter: asyncio.Future[None] | None = None
        self._num_open = len(self._streams)
        self._is_cancelled = False
        self._loop = asyncio.get_running_loop()
        self._pumps = [
            self._loop.create_task(self._pump(choice, stream))
            for choice, stream in enumerate(self._streams)
        ]

    @property
    def is_finished(self) -> bool:
        """Whether every choice has ended and every event was given."""
        return not self._num_open and not self._ready

    async def next_events(self, timeout: float) -> list[ChoiceEvent]:
        """Give what has arrived, waiting for it; nothing after ``timeout`` seconds of silence.

        The only caller at a time is the one consumer of the run.
        """
        if not self._ready and self._num_open:
            waiter = self._waiter = self._loop.create_future()
            timer = self._loop.call_later(timeout, _wake, waiter)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiter = None
        events, self._ready = self._ready, []
        return events

    async def __aiter__(self) -> AsyncIterator[ChoiceEvent]:
        """Give every event in turn."""
        while not self.is_finished:
            for event in await self.next_events(timeout=60.0):
                yield event

    async def cancel(self) -> None:
        """Stop every choice; their streams still tell their ends."""
        self._is_cancelled = True
        await asyncio.gather(*(stream.cancel() for stream in self._streams))

    async def close(self) -> None:
        """Let go of every job, stopping those that run, even if the caller is cancelled."""
        for pump in self._pumps:
            pump.cancel()
        await asyncio.shield(self._close_streams())

    async def _close_streams(self) -> None:
        closed = (stream.close() for stream in self._streams)
        for outcome in await asyncio.gather(*closed, return_exceptions=True):
            if isinstance(outcome, Exception):
                logger.warning("A job could not be let go: %s", type(outcome).__name__)

    async def _pump(self, choice: int, stream: JobStream) -> None:
        """Follow one stream; whatever happens, its choice ends with Done or Failed."""
        last: Event | None = None
        try:
            async for _, last in stream:
                if type(last) is Done and last.finish_reason is FinishReason.CANCELLED:
                    last = last if self._is_cancelled else _CANCELLED
                self._put(ChoiceEvent(choice, last), is_end=type(last) in (Done, Failed))
        except Exception:
            logger.exception("Following a job failed")
            self._put(ChoiceEvent(choice, _BROKEN), is_end=True)
        else:
            if type(last) not in (Done, Failed):
                self._put(ChoiceEvent(choice, _LOST), is_end=True)

    def _put(self, event: ChoiceEvent, *, is_end: bool) -> None:
        if is_end:
            self._num_open -= 1
        self._ready.append(event)
        if self._waiter is not None:
            _wake(self._waiter)


class SettledStream:
    """The stream of a job that asks for nothing: it ends at once, and no worker hears of it."""

    def __init__(self, num_prompt_tokens: int) -> None:
        self._done = Done(FinishReason.LENGTH, num_prompt_tokens, 0, 0)

    async def __aiter__(self) -> AsyncIterator[tuple[int, Event]]:
        """Give the end."""
        yield 1, self._done

    async def cancel(self) -> None:
        """Do nothing: there is nothing to stop."""

    async def close(self) -> None:
        """Do nothing: there is nothing to let go."""


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
