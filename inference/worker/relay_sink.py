"""How events leave the engine thread: handed over in microseconds, written by another."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from inference.protocol.events import TERMINAL, Done, Event, Tokens
from inference.protocol.jobs import GenerationJob
from inference.relay.waiting import TakenJob
from inference.relay.writer import EventWrite, EventWriter
from inference.worker.first_tokens import FirstTokens

RETRY_SECONDS = 0.2


@dataclass(slots=True)
class _OpenJob:
    """A job without its last event yet. ``seq`` belongs to the relay thread.

    Nothing is written of a muted job, but it stays open until the engine has let it go: only then
    may another attempt at it, of the same id, enter the engine.
    """

    attempt: int
    seq: int
    came_at: float
    is_streamed: bool
    has_begun: bool = False
    is_muted: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class RelaySink:
    """Numbers each job's events, writes those of a step in one call, wakes slots at a job's end.

    ``cancel`` stops a job in the engine whose events the server refuses.
    """

    def __init__(self, writer: EventWriter, cancel: Callable[[str], None]) -> None:
        self._writer = writer
        self._cancel = cancel
        self.first_tokens = FirstTokens()
        self._open: dict[str, _OpenJob] = {}
        self._handed_over: deque[Sequence[tuple[str, Event]]] = deque()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def __call__(self, events: Sequence[tuple[str, Event]]) -> None:
        """Take the events of one step. Called on the engine thread: no lock is held for long."""
        self._handed_over.append(events)
        self._wake.set()

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Write what was handed over, waiting at most ``timeout`` seconds, and end the thread."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout)

    def open(self, taken: TakenJob) -> threading.Event:
        """Expect events of a job; gives what is set at its last one."""
        came_at = time.monotonic() - taken.waited_seconds
        job = taken.job
        is_streamed = isinstance(job, GenerationJob) and job.stream
        opened = _OpenJob(job.attempt, taken.num_events, came_at, is_streamed, taken.num_events > 0)
        self._open[job.id] = opened
        return opened.done

    def mute(self, job: str) -> None:
        """Write nothing more of a job."""
        if (opened := self._open.get(job)) is not None:
            opened.is_muted = True

    def open_jobs(self) -> tuple[str, ...]:
        """List the jobs whose last event has not come."""
        return tuple(self._open)

    def _run(self) -> None:
        while not self._stopping.is_set() or self._handed_over or self._writer.has_unsent:
            if self._writer.has_unsent:
                # Not with each step: what waits grows, and all of it would be sent in vain.
                time.sleep(RETRY_SECONDS)
            else:
                self._wake.wait()
            self._wake.clear()
            rows = self._number_events()
            if rows or self._writer.has_unsent:
                self._write(rows)

    def _number_events(self) -> list[EventWrite]:
        """Give the handed-over events as rows; events of jobs that ended are dropped."""
        rows: list[EventWrite] = []
        while self._handed_over:
            for job, event in self._handed_over.popleft():
                opened = self._open.get(job)
                if opened is None:
                    continue
                if not opened.is_muted:
                    opened.seq += 1
                    rows.append((job, opened.attempt, opened.seq, event))
                if not opened.has_begun:
                    self._note_first_token(opened, event)
                if isinstance(event, TERMINAL):
                    self._close(job)
        return rows

    def _note_first_token(self, opened: _OpenJob, event: Event) -> None:
        """Note when it came: a stream's as it is told, a whole answer's by what its end says."""
        if opened.is_streamed and type(event) is Tokens:
            seconds_since = 0.0
        elif type(event) is Done and event.num_completion_tokens:
            seconds_since = event.timings.predicted_ms / 1000
        else:
            return
        opened.has_begun = True
        self.first_tokens.note(time.monotonic() - seconds_since - opened.came_at)

    def _write(self, rows: list[EventWrite]) -> None:
        for job in self._writer.write(rows):
            self.mute(job)
            self._cancel(job)

    def _close(self, job: str) -> None:
        if opened := self._open.pop(job, None):
            opened.done.set()
