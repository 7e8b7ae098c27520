"""A sink that lets a test wait for what it needs."""

import threading
from collections.abc import Sequence

from inference.protocol.events import Done, Event, Failed
from tests.inference.engine.fakes import Outcome

PATIENCE_SECONDS = 60


class Inbox:
    """Collects events by job."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[tuple[str, Event]] = []

    def __call__(self, events: Sequence[tuple[str, Event]]) -> None:
        """Take the events of a step."""
        with self._changed:
            self._events.extend(events)
            self._changed.notify_all()

    def wait_for_end(self, job_id: str) -> Outcome:
        """Wait until a job has ended."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: any(isinstance(event, Done | Failed) for event in self._of(job_id)),
                timeout=PATIENCE_SECONDS,
            )
            return Outcome(self._of(job_id))

    def so_far(self, job_id: str) -> Outcome:
        """Give what was told of a job until now."""
        with self._changed:
            return Outcome(self._of(job_id))

    def wait_for_event(self, job_id: str) -> None:
        """Wait until anything was told of a job."""
        with self._changed:
            assert self._changed.wait_for(lambda: bool(self._of(job_id)), timeout=PATIENCE_SECONDS)

    def _of(self, job_id: str) -> list[Event]:
        return [event for other, event in self._events if other == job_id]
