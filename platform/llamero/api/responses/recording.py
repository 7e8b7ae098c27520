"""Runs whose end is written down before anyone hears of it."""

from collections.abc import Awaitable, Callable, Sequence

from inference.protocol.events import Event, Failed
from llamero.api.errors import from_failed
from llamero.api.run import ChoiceEvent, GenerationRun, QueuePlace

Keep = Callable[[list[Event]], Awaitable[None]]
"""Writes down how a run of one choice ended, given all its events."""


class RecordedRun:
    """Reads a run from its first event on, and has its end kept before it is told."""

    def __init__(self, run: GenerationRun, keep: Keep) -> None:
        self._run = run
        self._keep = keep
        self._events: list[Event] = []

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended, and its end was given."""
        return self._run.is_finished

    @property
    def is_waiting(self) -> bool:
        """Whether nothing has been told yet."""
        return self._run.is_waiting

    @property
    def queue_place(self) -> QueuePlace | None:
        """Where the run waits; None once it has begun."""
        return self._run.queue_place

    async def next_events(self, timeout: float) -> list[ChoiceEvent]:
        """Give what has arrived, waiting for it; nothing after so many seconds of silence."""
        events = await self._run.next_events(timeout)
        self._events += (event for _, event in events)
        if events and self._run.is_finished:
            await self._keep(self._events)
        return events

    async def close(self) -> None:
        """Let go of the run."""
        await self._run.close()


class ToldStream:
    """The stream of a job that has told all: its events were stored."""

    num_ahead = 0
    wait_seconds: float | None = None

    def __init__(self, events: Sequence[Event]) -> None:
        self._left = list(events)

    def listen(self, listener: Callable[[], None]) -> None:
        """Do nothing: all there is to take is there from the start."""

    def take(self) -> list[Event]:
        """Give all events, once."""
        taken, self._left = self._left, []
        return taken

    async def cancel(self) -> None:
        """Do nothing: there is nothing to stop."""

    async def close(self) -> None:
        """Do nothing: there is nothing to let go."""


async def read_to_end(run: GenerationRun) -> list[Event]:
    """Give all events of a run of one choice, and close it; raises what it failed with."""
    events: list[Event] = []
    try:
        async for _, event in run:
            if type(event) is Failed:
                raise from_failed(event)
            events.append(event)
    finally:
        await run.close()
    return events
