"""How does one thread own a context that others use? They send commands; it sleeps without work."""

import logging
import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar

from inference.protocol.errors import EngineError, ErrorCode

logger = logging.getLogger(__name__)

_MAX_FAILURES = 10
"""Steps in a row that may fail before the thread gives up, and its replica is started again."""

Work = TypeVar("Work")
Taken = TypeVar("Taken", contravariant=True)


class Stepper(Protocol[Taken]):
    """What is moved on step by step by the thread that owns it."""

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        ...

    def add(self, work: Taken, /) -> None:
        """Take work in."""
        ...

    def cancel(self, job_id: str) -> None:
        """End a job; unknown ids are ignored."""
        ...

    def step(self) -> None:
        """Move everything on and tell what happened."""
        ...

    def fail_all(self, code: ErrorCode, message: str) -> None:
        """End every job badly, with an invitation to try again."""
        ...

    def flush(self) -> None:
        """Tell what has not been told."""
        ...

    def close(self) -> None:
        """Free the context."""
        ...


@dataclass(frozen=True, slots=True)
class _Add(Generic[Work]):
    work: Work


@dataclass(frozen=True, slots=True)
class _Cancel:
    job_id: str


@dataclass(frozen=True, slots=True)
class _Stop:
    pass


class CommandThread(Generic[Work]):
    """The only thread that touches a stepper; the methods here may be called from any other."""

    def __init__(self, stepper: Stepper[Work], name: str) -> None:
        self._stepper = stepper
        self._commands: SimpleQueue[_Add[Work] | _Cancel | _Stop] = SimpleQueue()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """End what runs, as lost and worth a retry elsewhere; free the context."""
        self._commands.put(_Stop())
        self._thread.join()

    def check_running(self) -> None:
        """Raise EngineError once the thread is stopping or dead: what is added may never run."""
        if self._is_stopping:
            raise EngineError(ErrorCode.ENGINE_LOST, "The replica is stopping.", is_retryable=True)

    def add(self, work: Work) -> None:
        """Hand work over."""
        self._commands.put(_Add(work))

    def cancel(self, job_id: str) -> None:
        """End a job before the next step."""
        self._commands.put(_Cancel(job_id))

    def _run(self) -> None:
        try:
            self._work()
        except Exception:  # whatever it is, nobody may wait for a thread that is gone
            logger.critical("the %s thread died", self._thread.name, exc_info=True)
            self._is_stopping = True
            self._lose_all()
            return
        self._lose_all()
        self._stepper.close()

    def _work(self) -> None:
        """Step until told to stop; raises where one step after another fails."""
        num_failures = 0
        while not self._is_stopping:
            try:
                self._obey()
                self._stepper.step()
                num_failures = 0
            except Exception:  # a bug must cost the jobs it met, never the replica
                logger.exception("an engine step failed")
                num_failures += 1
                if num_failures > _MAX_FAILURES:
                    raise
                self._stepper.fail_all(ErrorCode.ENGINE_FAILED, "The engine failed.")
                self._stepper.flush()

    def _lose_all(self) -> None:
        """End what runs and what was not begun, as worth a retry elsewhere."""
        stepper = self._stepper
        while not self._commands.empty():
            match self._commands.get():
                case _Add(work):
                    stepper.add(work)
                case _:
                    continue
        stepper.fail_all(ErrorCode.ENGINE_LOST, "The replica stopped.")
        stepper.flush()

    def _obey(self) -> None:
        """Carry out all commands; sleep for the first one when there is nothing to do."""
        while not self._commands.empty() or not self._stepper.has_work:
            match self._commands.get():
                case _Add(work):
                    self._stepper.add(work)
                case _Cancel(job_id):
                    self._stepper.cancel(job_id)
                case _Stop():
                    self._is_stopping = True
                    return
