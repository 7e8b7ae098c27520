"""Where does the engine run? On one thread, fed by commands, asleep when there is no work."""

import logging
import sys
import threading
from dataclasses import dataclass
from queue import SimpleQueue

from inference.backend.base import Backend
from inference.engine.admission import admit
from inference.engine.engine import Engine, EventSink
from inference.engine.sequence import Sequence
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import Job
from inference.protocol.replicas import EngineStats, RuntimeProfile, SlotStats

_SWITCH_SECONDS = 0.0005

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Add:
    sequence: Sequence


@dataclass(frozen=True, slots=True)
class _Cancel:
    job_id: str


@dataclass(frozen=True, slots=True)
class _Stop:
    pass


class EngineThread:
    """The only thread that touches the context; others send it commands."""

    def __init__(self, backend: Backend, profile: RuntimeProfile, sink: EventSink) -> None:
        self._backend = backend
        self._engine = Engine(backend, profile, sink)
        self._commands: SimpleQueue[_Add | _Cancel | _Stop] = SimpleQueue()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Begin to work, and have other threads of the process yield to the engine sooner.

        After each decode the engine waits for the GIL; at Python's 5 ms that would be a tenth of
        a step.
        """
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._thread.start()

    def stop(self) -> None:
        """End what runs, as lost and worth a retry elsewhere; free the context."""
        self._commands.put(_Stop())
        self._thread.join()

    def submit(self, job: Job) -> None:
        """Take a job; raises EngineError where it can never run. Grammars are compiled here."""
        if self._is_stopping:
            raise EngineError(ErrorCode.ENGINE_LOST, "The replica is stopping.", is_retryable=True)
        self._commands.put(_Add(admit(job, self._backend)))

    def cancel(self, job_id: str) -> None:
        """End a job before the next step."""
        self._commands.put(_Cancel(job_id))

    def stats(self) -> EngineStats:
        """Give counters and gauges; cheap."""
        return self._engine.stats()

    def slots(self) -> tuple[SlotStats, ...]:
        """Describe each seat of the batch."""
        return self._engine.slots()

    def _run(self) -> None:
        engine = self._engine
        while not self._is_stopping:
            try:
                self._obey()
                engine.step()
            except Exception:  # a bug must cost the jobs it met, never the replica
                logger.exception("an engine step failed")
                engine.fail_all(ErrorCode.ENGINE_FAILED, "The engine failed.")
                engine.flush()
        while not self._commands.empty():
            match self._commands.get():
                case _Add(sequence):
                    engine.add(sequence)
                case _:
                    continue
        engine.fail_all(ErrorCode.ENGINE_LOST, "The replica stopped.")
        engine.flush()
        engine.close()

    def _obey(self) -> None:
        """Carry out all commands; sleep for the first one when there is nothing to do."""
        while not self._commands.empty() or not self._engine.has_work:
            match self._commands.get():
                case _Add(sequence):
                    self._engine.add(sequence)
                case _Cancel(job_id):
                    self._engine.cancel(job_id)
                case _Stop():
                    self._is_stopping = True
                    return
