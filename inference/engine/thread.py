"""Where does the engine run? On one thread, fed by commands, asleep when there is no work."""

import sys
from pathlib import Path

from inference.backend.base import Backend
from inference.engine.admission import admit
from inference.engine.command_thread import CommandThread
from inference.engine.engine import Engine
from inference.engine.runner import EventSink
from inference.engine.sequence import Sequence
from inference.protocol.jobs import Job
from inference.protocol.replicas import EngineStats, RuntimeProfile, SlotStats

_SWITCH_SECONDS = 0.0005


def yield_sooner() -> None:
    """Have the other threads of the process yield to the engine's sooner.

    After each decode it waits for the GIL; at Python's 5 ms that would be a tenth of a step.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)


class EngineThread:
    """Runs the engine of a generative model; implements Runner."""

    def __init__(
        self,
        backend: Backend,
        profile: RuntimeProfile,
        sink: EventSink,
        *,
        draft_backend: Backend | None = None,
        spill_directory: Path | None = None,
    ) -> None:
        self._backend, self._profile = backend, profile
        self._engine = Engine(
            backend, profile, sink, draft_backend=draft_backend, spill_directory=spill_directory
        )
        self._thread: CommandThread[Sequence] = CommandThread(self._engine, "engine")

    def start(self) -> None:
        """Begin to work."""
        yield_sooner()
        self._thread.start()

    def stop(self) -> None:
        """End what runs, as lost and worth a retry elsewhere; free the context."""
        self._thread.stop()

    def submit(self, job: Job) -> None:
        """Take a job; raises EngineError where it can never run. Grammars are compiled here."""
        self._thread.check_running()
        self._thread.add(admit(job, self._backend, self._profile))

    def cancel(self, job_id: str) -> None:
        """End a job before the next step."""
        self._thread.cancel(job_id)

    def stats(self) -> EngineStats:
        """Give counters and gauges; cheap."""
        return self._engine.stats()

    def slots(self) -> tuple[SlotStats, ...]:
        """Describe each seat of the batch."""
        return self._engine.slots()
