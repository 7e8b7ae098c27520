"""One job as its gateway follows it: events in order, without a hole, to exactly one end."""

import time
from collections import deque
from collections.abc import Callable

from inference.protocol.events import TERMINAL, Event
from inference.protocol.jobs import GenerationJob, Job
from inference.relay.limits import Reading

MAX_BUFFERED_EVENTS = 1024


class JobStream:
    """The events of a job, made by ``Dispatcher.submit``, read by one task.

    ``is_ended`` once no event follows, ``is_finished`` once the job's own last one was taken.
    Holds a bounded number of events: a reader that falls behind gets the rest from the job's
    stream in Redis. ``close`` it whatever happens: it stops the job if it has not ended, unless
    the job is durable.
    """

    def __init__(
        self,
        job: Job,
        *,
        request_fill: Callable[[], None],
        request_cancel: Callable[["JobStream"], None],
        request_close: Callable[["JobStream"], None],
    ) -> None:
        self.job = job
        self.num_ahead = 0
        self.wait_seconds: float | None = None
        self.readings: tuple[Reading, ...] = ()
        self.next_seq = 1
        self.is_ended = False
        self.is_finished = False
        self.is_submitted = False
        self.last_news = time.monotonic()
        self.last_poll = self.last_news
        self.suspect_since: float | None = None
        # When who reads it may no more, in seconds since 1970: the end of a token.
        self.reader_ends_at: float | None = None
        self._highest_seq = 0
        self._buffer: deque[Event] = deque()
        self._request_fill = request_fill
        self._request_cancel = request_cancel
        self._request_close = request_close
        self._is_closed = False
        self._is_cut = False
        self._listener: Callable[[], None] | None = None

    def listen(self, listener: Callable[[], None]) -> None:
        """Have a function called, at once and briefly, whenever ``take`` has something to give."""
        self._listener = listener

    def take(self) -> list[Event]:
        """Give what has arrived, without waiting; the last event of all is Done or Failed."""
        events = list(self._buffer)
        self._buffer.clear()
        if events and isinstance(events[-1], TERMINAL):
            self.is_finished = not self._is_cut
        elif self.is_behind:
            self._request_fill()
        return events

    async def cancel(self) -> None:
        """Ask that the job stops; its last event still comes. Returns at once; safe to repeat."""
        if not self.is_ended:
            self._request_cancel(self)

    async def close(self) -> None:
        """Stop the job unless it has ended, let its keys go. Returns at once; safe to repeat."""
        if not self._is_closed:
            self._is_closed = True
            self._request_close(self)

    @property
    def is_durable(self) -> bool:
        """Whether the job goes on when nobody follows it."""
        return isinstance(self.job, GenerationJob) and self.job.is_durable

    @property
    def is_behind(self) -> bool:
        """Whether events are known to exist that did not arrive, and there is room for them."""
        return self._highest_seq >= self.next_seq and self.has_room and not self.is_ended

    @property
    def has_room(self) -> bool:
        """Whether the reader keeps up, so that more events may be read for it."""
        return len(self._buffer) < MAX_BUFFERED_EVENTS // 2

    def accept(self, seq: int, event: Event) -> None:
        """Take an event in its turn; one that comes early or does not fit is only noted."""
        if seq != self.next_seq or self.is_ended or len(self._buffer) >= MAX_BUFFERED_EVENTS:
            self._highest_seq = max(self._highest_seq, seq)
            return
        self.next_seq = seq + 1
        self._buffer.append(event)
        self.last_news = time.monotonic()
        if isinstance(event, TERMINAL):
            self.is_ended = True
        self._wake()

    def end(self, event: Event) -> None:
        """End the stream here, when no end will come from the job's own stream, or none is read.

        The job itself may go on: its keys are not ours to delete.
        """
        if not self.is_ended:
            self.is_ended = self._is_cut = True
            self._buffer.append(event)
            self._wake()

    def _wake(self) -> None:
        if self._listener is not None:
            self._listener()
