"""What a slot does with a ticket: take the best waiting job, run it, and go on until none waits."""

import logging
import threading
import time
from typing import Protocol

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Failed
from inference.protocol.jobs import Job, blamed_field
from inference.relay.connect import RedisError
from inference.relay.running import RunningJobs
from inference.relay.waiting import NotYet, TakenJob, WaitingSet
from inference.worker.relay_sink import RelaySink

logger = logging.getLogger(__name__)
OVERDUE_SECONDS = 5.0
LATER_SECONDS = 0.02
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
        self,
        waiting: WaitingSet,
        running: RunningJobs,
        replica: str,
        engine: JobRunner,
        sink: RelaySink,
    ) -> None:
        self._waiting = waiting
        self._running = running
        self._replica = replica
        self._engine = engine
        self._sink = sink
        self._lock = threading.Lock()
        self._entered: dict[str, threading.Event] = {}
        self._submitted: set[str] = set()
        self._early_cancels: set[str] = set()
        self._is_draining = False
        self.is_paused = False
        self.num_tickets = 0

    @property
    def num_busy(self) -> int:
        """Count the slots that have a job."""
        return len(self._entered)

    def take_jobs(self) -> None:
        """Run waiting jobs until there is none, or the replica drains or stalls."""
        self.num_tickets += 1
        finished: str | None = None
        while not (self._is_draining or self.is_paused):
            try:
                taken = self._waiting.take(self._replica, finished=finished)
            except (RedisError, OSError) as error:
                logger.warning("no job could be taken: %s", error)
                return
            if taken is None:
                return
            if isinstance(taken, NotYet):
                time.sleep(LATER_SECONDS)
                continue
            self._run(taken)
            finished = taken.job.id

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

    def stop(self, job: str) -> None:
        """Stop a job that others go on with, if the engine has it."""
        with self._lock:
            if job in self._submitted:
                self._engine.cancel(job)

    def drain(self, seconds: float) -> None:
        """Take no more jobs, wait for those that run, and leave the rest to other replicas."""
        self._is_draining = True
        ends = time.monotonic() + seconds
        while self._sink.open_jobs() and time.monotonic() < ends:
            time.sleep(0.05)
        if jobs := self._sink.open_jobs():
            logger.info("%d jobs go on elsewhere", len(jobs))
            self._hand_back(jobs)

    def _hand_back(self, jobs: tuple[str, ...]) -> None:
        try:
            self._running.hand_back(jobs)
        except (RedisError, OSError) as error:
            logger.warning("jobs could not be handed back, they follow later: %s", error)
        for job in jobs:
            self._sink.mute(job)
            self.cancel(job)

    def _run(self, taken: TakenJob) -> None:
        job = taken.job
        left = self._enter(job.id)
        done = self._sink.open(taken)
        try:
            self._engine.submit(job)
        except EngineError as error:
            param = blamed_field(error, job)
            failed = Failed(error.code, error.message, error.is_retryable, param=param)
            self._sink([(job.id, failed)])
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
            del self._entered[job.id]
            self._submitted.discard(job.id)
            self._early_cancels.discard(job.id)
        left.set()

    def _enter(self, job: str) -> threading.Event:
        """Have a job to this slot alone; gives what to set when the slot leaves it.

        An earlier attempt may still be in the engine, from before this replica was thought lost.
        """
        while True:
            with self._lock:
                if (older := self._entered.get(job)) is None:
                    left = self._entered[job] = threading.Event()
                    return left
            self._sink.mute(job)
            self.cancel(job)
            older.wait()

    def _wait(self, job: Job, done: threading.Event) -> None:
        if done.wait(max(0.0, job.deadline - time.time()) + OVERDUE_SECONDS):
            return
        logger.error("job %s did not end at its deadline", job.id)
        self._engine.cancel(job.id)
        late = Failed(ErrorCode.DEADLINE_EXCEEDED, "The request ran out of time.", True)
        self._sink([(job.id, late)])
        done.wait()
