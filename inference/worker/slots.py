"""What a slot does with a ticket: take the best waiting job, run it, and go on until none waits."""

import logging
import threading
import time
from typing import Protocol

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Failed
from inference.protocol.jobs import Job
from inference.relay.connect import RedisError
from inference.relay.waiting import WaitingSet
from inference.worker.relay_sink import RelaySink

logger = logging.getLogger(__name__)
OVERDUE_SECONDS = 5.0
MAX_EARLY_CANCELS = 1024


class JobRunner(Protocol):
    """The engine, as the slots see it."""

    def submit(self, job: Job) -> None:
        """Start a job; raises EngineError if it can never run."""

    def cancel(self, job_id: str) -> None:
        """Stop a job at the next step."""


class Slots:
    """Takes and runs jobs, each on the Celery thread that calls ``take_jobs``."""

    def __init__(
        self, waiting: WaitingSet, replica: str, engine: JobRunner, sink: RelaySink
    ) -> None:
        self._waiting = waiting
        self._replica = replica
        self._engine = engine
        self._sink = sink
        self._lock = threading.Lock()
        self._submitted: set[str] = set()
        self._early_cancels: set[str] = set()
        self._is_draining = False

    def take_jobs(self) -> None:
        """Run waiting jobs until there is none, or the replica drains."""
        finished: str | None = None
        while not self._is_draining:
            try:
                job = self._waiting.take(self._replica, finished=finished)
            except (RedisError, OSError) as error:
                logger.warning("no job could be taken: %s", error)
                return
            if job is None:
                return
            self._run(job)
            finished = job.id

    def cancel(self, job: str) -> None:
        """Stop a job, even one that is just being taken. Harmless for jobs that ended."""
        with self._lock:
            if job in self._submitted:
                self._engine.cancel(job)
                return
            # Forgetting is safe: the heartbeat reads the cancelled jobs again each second.
            if len(self._early_cancels) >= MAX_EARLY_CANCELS:
                self._early_cancels.clear()
            self._early_cancels.add(job)

    def drain(self, seconds: float) -> None:
        """Take no more jobs, wait for those that run, and end the rest as retryable."""
        self._is_draining = True
        ends = time.monotonic() + seconds
        while self._sink.open_jobs() and time.monotonic() < ends:
            time.sleep(0.05)
        message = "The server is restarting. Please try again."
        failed = Failed(ErrorCode.ENGINE_LOST, message, is_retryable=True)
        if jobs := self._sink.open_jobs():
            self._sink([(job, failed) for job in jobs])

    def _run(self, job: Job) -> None:
        done = self._sink.open(job)
        try:
            self._engine.submit(job)
        except EngineError as error:
            self._sink([(job.id, Failed(error.code, error.message, error.is_retryable))])
        except Exception:  # a bug must cost its job, and never leave the client waiting
            logger.exception("job %s could not be submitted", job.id)
            message = "The engine failed on this request."
            self._sink([(job.id, Failed(ErrorCode.INTERNAL_ERROR, message))])
        with self._lock:
            self._submitted.add(job.id)
            if job.id in self._early_cancels:
                self._engine.cancel(job.id)
        self._wait(job, done)
        with self._lock:
            self._submitted.discard(job.id)
            self._early_cancels.discard(job.id)

    def _wait(self, job: Job, done: threading.Event) -> None:
        if done.wait(max(0.0, job.deadline - time.time()) + OVERDUE_SECONDS):
            return
        logger.error("job %s did not end at its deadline", job.id)
        self._engine.cancel(job.id)
        late = Failed(ErrorCode.DEADLINE_EXCEEDED, "The request ran out of time.", True)
        self._sink([(job.id, late)])
        done.wait()
