"""Which sequences are here, what is told of them, and how do they leave?"""

import logging
from collections.abc import Callable, Iterator

from inference.engine.counters import Counters
from inference.engine.ending import describe_end
from inference.engine.runner import EventSink
from inference.engine.seats import Seats
from inference.engine.sequence import Sequence
from inference.protocol.errors import ErrorCode
from inference.protocol.events import Event, Failed, FinishReason

logger = logging.getLogger(__name__)


class Roster:
    """The sequences of an engine from their arrival to their end, and the events not yet sent."""

    def __init__(
        self, seats: Seats, counters: Counters, sink: EventSink, clock: Callable[[], float]
    ) -> None:
        self._seats, self._counters = seats, counters
        self._sink, self._clock = sink, clock
        self._sequences: dict[str, Sequence] = {}
        self._events: list[tuple[str, Event]] = []

    def __len__(self) -> int:
        return len(self._sequences)

    def __iter__(self) -> Iterator[Sequence]:
        """Go through the sequences of now, whatever ends meanwhile."""
        return iter(list(self._sequences.values()))

    @property
    def has_events(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._events)

    def add(self, sequence: Sequence) -> bool:
        """Take a sequence in; one whose job is here already is closed and refused."""
        if sequence.job.id in self._sequences:
            logger.warning("job %s is here already", sequence.job.id)
            sequence.sampler.close()
            return False
        self._sequences[sequence.job.id] = sequence
        self._seats.add(sequence)
        return True

    def find(self, job_id: str) -> Sequence | None:
        """Give the sequence of a job, if it is here."""
        return self._sequences.get(job_id)

    def tell(self, sequence: Sequence, event: Event) -> None:
        """Keep an event for the end of the step."""
        self._events.append((sequence.job.id, event))

    def finish(self, sequence: Sequence, reason: FinishReason) -> None:
        """End a sequence well: the rest of its text, then the end."""
        self._retire(sequence, keeps_cells=True)
        for event in describe_end(sequence, reason, self._clock()):
            self.tell(sequence, event)
        if reason is FinishReason.CANCELLED:
            self._counters.num_jobs_cancelled += 1
        else:
            self._counters.num_jobs_done += 1

    def fail(
        self,
        sequence: Sequence,
        code: ErrorCode,
        message: str,
        *,
        is_retryable: bool = False,
        param: str = "",
    ) -> None:
        """End a sequence badly, because of a field of its request or not."""
        self._retire(sequence, keeps_cells=False)
        counts = (sequence.num_prompt, sequence.num_generated)
        failed = Failed(code, message, is_retryable, *counts, param=param)
        self.tell(sequence, failed)
        self._counters.num_jobs_failed += 1

    def flush(self) -> None:
        """Hand the events so far to the sink."""
        if not self._events:
            return
        events, self._events = self._events, []
        self._sink(events)

    def _retire(self, sequence: Sequence, *, keeps_cells: bool) -> None:
        """Give back whatever a sequence holds: sampler, slot, place in line."""
        del self._sequences[sequence.job.id]
        counters = self._counters
        counters.longest_sequence = max(counters.longest_sequence, sequence.num_tokens)
        sequence.sampler.close()
        self._seats.leave(sequence, keeps_cells=keeps_cells)
