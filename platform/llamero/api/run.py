"""The jobs of one request, followed together until each has ended."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol
from weakref import WeakSet

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason

logger = logging.getLogger(__name__)

_CANCELLED = Failed(ErrorCode.INTERNAL_ERROR, "The request was cancelled on the server.")
_CANCELLED_BY_OWNER = Failed(ErrorCode.REQUEST_CANCELLED, "The request was cancelled.")
_STOPPING = Failed(ErrorCode.ENGINE_LOST, "The server is restarting. Please try again.", True)
_DETACHED = Failed(
    ErrorCode.STREAM_DETACHED, "The server is restarting. Please resume this stream.", True
)
_open_runs: "WeakSet[GenerationRun]" = WeakSet()
_openings: set[object] = set()


def has_open_runs() -> bool:
    """Tell whether somebody reads a run of this process, or waits for one to be opened."""
    return bool(_open_runs or _openings)


@contextmanager
def opening_a_run() -> Iterator[None]:
    """Note that a run is being opened for somebody who reads already."""
    opening = object()
    _openings.add(opening)
    try:
        yield
    finally:
        _openings.discard(opening)


def fail_open_runs() -> None:
    """Tell whoever reads a run of this process that it ends here: the process is to stop."""
    for run in tuple(_open_runs):
        run.fail(_DETACHED if run.is_durable else _STOPPING)


class ChoiceStream(Protocol):
    """The events of the job of one choice, the last of them Done or Failed.

    ``num_ahead`` jobs wait before it, and so it waits for ``wait_seconds`` as far as is known.
    """

    num_ahead: int
    wait_seconds: float | None

    def listen(self, listener: Callable[[], None]) -> None:
        """Have a function called whenever there is something to take."""

    def take(self) -> list[Event]:
        """Give what has arrived, without waiting."""

    async def cancel(self) -> None:
        """Stop the job."""

    async def close(self) -> None:
        """Let go of the job, stopping it if it has not ended."""


class ChoiceEvent(NamedTuple):
    """An event of the choice of this index (prompt-major where there are several prompts)."""

    choice: int
    event: Event


class QueuePlace(NamedTuple):
    """Where a run waits: 1 is next. ``wait_seconds`` is None while nothing is known."""

    position: int
    wait_seconds: float | None


class GenerationRun:
    """Merges the streams of a request's jobs. Whoever opens a run must close it, on every path.

    The jobs of a durable run go on when it is closed: who reads it may come back.
    A token wakes the one task that reads the run, and no other: there is no task per stream, and
    no timer per wait.
    """

    def __init__(self, streams: Sequence[ChoiceStream], *, is_durable: bool = False) -> None:
        self.is_durable = is_durable
        self.is_waiting = True
        self._streams = tuple(streams)
        self._num_open = len(self._streams)
        self._is_cancelled = False
        self._failure: Failed | None = None
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._wait_ends = 0.0
        self._timer: asyncio.TimerHandle | None = None
        for stream in self._streams:
            stream.listen(self._wake)
        _open_runs.add(self)

    @property
    def is_finished(self) -> bool:
        """Whether every choice has ended, and its end was given."""
        return not self._num_open

    @property
    def queue_place(self) -> QueuePlace | None:
        """Where the run waits; None once any of its choices has begun."""
        if not self.is_waiting:
            return None
        first = min(self._streams, key=lambda stream: stream.num_ahead)
        return QueuePlace(first.num_ahead + 1, first.wait_seconds)

    async def next_events(self, timeout: float) -> list[ChoiceEvent]:
        """Give what has arrived, waiting for it; nothing after ``timeout`` seconds of silence."""
        events = self._take()
        if events or not self._num_open:
            return events
        self._waiter = self._loop.create_future()
        self._wait_ends = self._loop.time() + timeout
        if self._timer is None or self._timer.when() > self._wait_ends:
            self._start_timer()
        try:
            await self._waiter
        finally:
            self._waiter = None
        return self._take()

    async def __aiter__(self) -> AsyncIterator[ChoiceEvent]:
        """Give every event in turn."""
        while not self.is_finished:
            for event in await self.next_events(timeout=60.0):
                yield event

    async def cancel(self) -> None:
        """Stop every choice; their streams still tell their ends."""
        self._is_cancelled = True
        await asyncio.gather(*(stream.cancel() for stream in self._streams))

    def fail(self, failure: Failed) -> None:
        """End the run with a failure, after what has arrived; its jobs are stopped by ``close``."""
        self._failure = failure
        self._wake()

    async def close(self) -> None:
        """Let go of every job, stopping those that run and are not durable.

        Also if the caller is cancelled.
        """
        _open_runs.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.shield(self._close_streams())

    async def _close_streams(self) -> None:
        closed = (stream.close() for stream in self._streams)
        for outcome in await asyncio.gather(*closed, return_exceptions=True):
            if isinstance(outcome, Exception):
                logger.warning("A job could not be let go: %s", type(outcome).__name__)

    def _take(self) -> list[ChoiceEvent]:
        taken: list[ChoiceEvent] = []
        for choice, stream in enumerate(self._streams):
            for event in stream.take():
                if type(event) is Done or type(event) is Failed:
                    self._num_open -= 1
                    taken.append(ChoiceEvent(choice, self._judge_end(event)))
                else:
                    taken.append(ChoiceEvent(choice, event))
        if self._failure is not None and self._num_open:
            self._num_open = 0
            taken.append(ChoiceEvent(0, self._failure))
        if taken:
            self.is_waiting = False
        return taken

    def _judge_end(self, end: Done | Failed) -> Event:
        """A job that was cancelled, but not by us, did not end well."""
        is_cancelled = isinstance(end, Done) and end.finish_reason is FinishReason.CANCELLED
        if not is_cancelled or self._is_cancelled:
            return end
        return _CANCELLED_BY_OWNER if self.is_durable else _CANCELLED

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _start_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._wait_ends, self._on_timer)

    def _on_timer(self) -> None:
        """End a wait that is over; one that began later gets the rest of its time."""
        self._timer = None
        if self._waiter is None:
            return
        if self._loop.time() >= self._wait_ends:
            self._wake()
        else:
            self._start_timer()


class SettledStream:
    """The stream of a job that asks for nothing: it ends at once, and no worker hears of it."""

    num_ahead = 0
    wait_seconds: float | None = None

    def __init__(self, num_prompt_tokens: int) -> None:
        self._left: list[Event] = [Done(FinishReason.LENGTH, num_prompt_tokens, 0, 0)]

    def listen(self, listener: Callable[[], None]) -> None:
        """Do nothing: all there is to take is there from the start."""

    def take(self) -> list[Event]:
        """Give the end, once."""
        taken, self._left = self._left, []
        return taken

    async def cancel(self) -> None:
        """Do nothing: there is nothing to stop."""

    async def close(self) -> None:
        """Do nothing: there is nothing to let go."""
