"""The life of a replica: verify files, load, serve, drain, end."""

import gc
import logging
import os
import threading
import time
from collections.abc import Callable

from celery import Celery
from celery.signals import worker_shutting_down
from kombu.exceptions import OperationalError

from inference.protocol.errors import EngineError
from inference.protocol.names import ticket_queue
from inference.protocol.replicas import ReplicaState
from inference.relay.connect import RedisError, connect
from inference.relay.mailbox import CancelInbox
from inference.relay.reaper import ReplicaEnd, reap
from inference.relay.registry import ReplicaRegistry
from inference.relay.running import RunningJobs
from inference.relay.text_lane import TextLane
from inference.relay.waiting import WaitingSet
from inference.relay.writer import EventWriter
from inference.text.render_pool import RenderPool
from inference.worker.celery_app import build_app, run_worker, send_ticket
from inference.worker.conversion import convert_weights, needs_conversion
from inference.worker.heartbeat import Heartbeat, StrayJobs
from inference.worker.loading import LoadedEngine, build_engine
from inference.worker.model_files import BadFileError, verify_files
from inference.worker.relay_sink import RelaySink
from inference.worker.score_head import check_score_head
from inference.worker.settings import WorkerSettings
from inference.worker.slots import Slots
from inference.worker.status_board import StatusBoard
from inference.worker.text_lane import TextAnswers, TextThreads
from inference.worker.watchdog import EngineWatch, TicketWatch

logger = logging.getLogger(__name__)
EXIT_LOAD_FAILED = 3
EXIT_WEDGED = 70
EXIT_GOOD = 0  # also where no ticket is heard any more: its jobs have no part in that
LISTEN_SECONDS = 4.0
QUICK_SECONDS = 2.0
FLUSH_SECONDS = 1.0
TEXT_SECONDS = 3.0


class Replica:
    """Owns the threads of a replica; ``run`` lives on the process's main thread."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._redis = connect(settings.redis_url)
        # A line that died without a word is noticed before the lease ends.
        self._quick_redis = connect(
            settings.redis_url, max_connections=8, patience_seconds=QUICK_SECONDS
        )
        self._sink = RelaySink(EventWriter(self._redis), cancel=self._stop)
        self._board = StatusBoard(settings, self._sink.first_tokens)
        self._heartbeat = Heartbeat(ReplicaRegistry(self._quick_redis), self._board.describe)
        self._pool = RenderPool()
        self._shutdown = threading.Event()
        self._slots: Slots | None = None

    def run(self) -> int:
        """Serve until SIGTERM; gives the exit code."""
        self._take_over()
        self._heartbeat.start()
        try:
            engine = self._load()
        except EngineError as error:
            self._board.bad_sha256 = error.sha256 if isinstance(error, BadFileError) else ""
            return self._fail(error.message)
        except Exception as error:  # whatever loading raises, the operator must read why
            logger.exception("the model could not be loaded")
            return self._fail(f"{type(error).__name__}: {error}")
        return self._serve(engine)

    def _take_over(self) -> None:
        """Let others go on with what an earlier process of this name left behind."""
        try:
            left = reap(self._redis, self._settings.spec.replica, ReplicaEnd.KILLED)
        except (RedisError, OSError) as error:
            logger.warning("jobs of an earlier process are found later: %s", error)
        else:
            if left.queued:
                logger.warning("%d jobs of an earlier process wait again", len(left.queued))

    def _load(self) -> LoadedEngine:
        spec = self._settings.spec
        verify_files(spec, self._settings.home)
        check_score_head(spec)
        if needs_conversion(spec):
            self._board.reason = f"Converts its weights to {spec.profile.weight_type}, once."
            self._heartbeat.beat_now()
            spec = convert_weights(spec, self._settings.home)
            self._board.reason = ""
        self._move_to(ReplicaState.LOADING)
        return build_engine(
            spec,
            self._sink,
            self._board.report_progress,
            spill_directory=self._settings.home / "spill",
        )

    def _serve(self, engine: LoadedEngine) -> int:
        spec = self._settings.spec
        waiting = WaitingSet(self._redis, spec.deployment)
        running = RunningJobs(self._quick_redis, spec.replica)
        self._slots = slots = Slots(waiting, running, spec.replica, engine.runner, self._sink)
        self._board.engine = engine
        engine.runner.start()
        self._sink.start()
        text = TextThreads(
            TextLane(self._redis, spec.deployment, spec.replica),
            TextAnswers(engine.model, self._pool),
        )
        text.start()
        inbox = CancelInbox(self._redis, spec.replica)
        self._start_thread("cancels", lambda: self._listen(inbox))
        self._watch_after_each_beat(engine, CancelInbox(self._quick_redis, spec.replica), running)
        self._move_to(ReplicaState.READY)
        logger.info("ready with %d slots", spec.profile.num_slots)
        drain = self._start_thread("drain", lambda: self._drain_when_told(slots, text))
        worker_shutting_down.connect(self._on_shutdown)
        app = build_app(self._settings.redis_url, spec.replica, slots.take_jobs)
        self._wake_slots(app, waiting)
        # What is here now stays: no collection in the midst of a step need look through it again.
        gc.collect()
        gc.freeze()
        code = run_worker(app, f"{spec.replica}@{self._settings.node}", spec.profile.num_slots)
        if code:
            logger.critical("the consumer of tickets ended with %d", code)
        self._shutdown.set()
        drain.join()
        text.join(TEXT_SECONDS)
        self._end(engine)
        return EXIT_GOOD

    def _wake_slots(self, app: Celery, waiting: WaitingSet) -> None:
        """Send tickets for what waited until this replica was ready."""
        spec = self._settings.spec
        try:
            for _ in range(min(len(waiting), spec.profile.num_slots)):
                send_ticket(app, spec.replica)
        except (RedisError, OperationalError, OSError) as error:
            logger.warning("no slot was woken, tickets follow later: %s", error)

    def _drain_when_told(self, slots: Slots, text: TextThreads) -> None:
        self._shutdown.wait()
        self._move_to(ReplicaState.DRAINING)
        text.stop()
        slots.drain(self._settings.drain_seconds)

    def _on_shutdown(self, **_: object) -> None:
        # Runs in a signal handler: the draining thread does the work.
        self._shutdown.set()

    def _end(self, engine: LoadedEngine) -> None:
        self._sink.stop(FLUSH_SECONDS)
        engine.runner.stop()
        self._pool.close()
        self._board.state = ReplicaState.STOPPED
        self._heartbeat.stop()

    def _fail(self, reason: str) -> int:
        self._board.state, self._board.reason = ReplicaState.FAILED, reason
        self._heartbeat.stop()
        logger.error("%s", reason)
        return EXIT_LOAD_FAILED

    def _move_to(self, state: ReplicaState) -> None:
        self._board.state = state
        self._heartbeat.beat_now()

    def _cancel(self, job: str) -> None:
        if self._slots:
            self._slots.cancel(job)

    def _stop(self, job: str) -> None:
        if self._slots:
            self._slots.stop(job)

    def _listen(self, inbox: CancelInbox) -> None:
        while True:
            for job in inbox.listen(LISTEN_SECONDS):
                self._cancel(job)

    def _watch_after_each_beat(
        self, engine: LoadedEngine, inbox: CancelInbox, running: RunningJobs
    ) -> None:
        strays = StrayJobs()
        check_progress = self._watch_progress(engine)

        def check() -> None:
            check_progress()
            for job in inbox.pending():
                self._cancel(job)
            if lost := strays.find(running.ids(), self._sink.open_jobs()):
                logger.error("%d jobs were taken without an answer", len(running.hand_back(lost)))

        self._heartbeat.after_beat(check)

    def _watch_progress(self, engine: LoadedEngine) -> Callable[[], None]:
        """Give what shows a standstill, and ends a process that will not get over it."""
        spec, slots = self._settings.spec, self._slots
        assert slots is not None
        queue = ticket_queue(spec.replica)
        steps = EngineWatch(
            lambda: engine.runner.stats().num_steps, lambda: bool(self._sink.open_jobs())
        )
        tickets = TicketWatch(
            lambda: slots.num_tickets,
            lambda: slots.num_busy < spec.profile.num_slots,
            lambda: int(self._quick_redis.llen(queue)),
        )

        def check() -> None:
            now = time.monotonic()
            standstill = steps.check(now)
            if standstill.is_wedged:
                logger.critical("the engine made no step for %.0f s", standstill.seconds)
                os._exit(EXIT_WEDGED)
            slots.is_paused = standstill.is_stalled
            if self._board.show_standstill(standstill):
                self._heartbeat.beat_now()
            if tickets.is_deaf(now):
                logger.critical("tickets wait, and none is heard")
                os._exit(EXIT_GOOD)

        return check

    @staticmethod
    def _start_thread(name: str, target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread
