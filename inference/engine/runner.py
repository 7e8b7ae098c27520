"""What can the rest of a replica ask of its engine, whatever kind it is?"""

from collections.abc import Callable, Sequence
from typing import Protocol

from inference.protocol.events import Event
from inference.protocol.jobs import Job
from inference.protocol.replicas import EngineStats, SlotStats

EventSink = Callable[[Sequence[tuple[str, Event]]], None]
"""Takes the events of one step, on the engine's thread: it must return in microseconds."""


class Runner(Protocol):
    """A thread that works on jobs and tells a sink what happens to them."""

    def start(self) -> None:
        """Begin to work."""
        ...

    def stop(self) -> None:
        """End what runs, as lost and worth a retry elsewhere; free the context."""
        ...

    def submit(self, job: Job) -> None:
        """Take a job and return at once; raises EngineError where it can never run."""
        ...

    def cancel(self, job_id: str) -> None:
        """End a job before the next step; ids that are unknown or have ended are ignored."""
        ...

    def stats(self) -> EngineStats:
        """Give counters and gauges; cheap."""
        ...

    def slots(self) -> tuple[SlotStats, ...]:
        """Describe each seat of the batch; never carries prompt text."""
        ...
