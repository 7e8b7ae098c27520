"""The thread that runs batches, beside the control loop, with an event loop of its own."""

import asyncio
import logging
import threading
import time
from functools import partial

from django.conf import settings
from django.db import connections

from inference.health.progress import Check, Progress
from inference.relay.connect import UNREACHABLE, RedisError, SyncRedis
from inference.relay.demand import Lease
from inference.relay.keys import BATCHES
from llamero import dispatch
from llamero.api.threads import run_in_thread
from llamero.batches.models import BatchState
from llamero.batches.running.batch_run import BatchRun, Places
from llamero.batches.running.gates import Gates
from llamero.batches.selectors import list_open
from llamero.batches.services import BatchLost

logger = logging.getLogger(__name__)
PERIOD_SECONDS = 1.0
STUCK_SECONDS = 120.0
STOP_SECONDS = 0.8
# How long a batch rests whose run failed.
REST_SECONDS = 10.0
MAX_OPEN = 1000
MAX_ANSWERED, MAX_ANSWERED_OF_OWNER = 16, 2


class BatchRunner:
    """Runs batches while it holds the lease; another control worker's stands by."""

    def __init__(self, redis: SyncRedis) -> None:
        self._lease = Lease(redis, BATCHES)
        self._progress = Progress()
        self.live: dict[str, Check] = {"batches": self._progress.within("round", STUCK_SECONDS)}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what is answered by now is written."""
        self._is_stopped = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        finally:
            connections.close_all()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        runs = Runs()
        try:
            while not self._is_stopped:
                await self._look(runs)
                self._progress.note("round")
                try:
                    async with asyncio.timeout(PERIOD_SECONDS):
                        await self._stopping.wait()
                except TimeoutError:
                    pass
        finally:
            await runs.end()
            await dispatch.get_dispatcher().close()
            await self._let_go()

    async def _look(self, runs: "Runs") -> None:
        try:
            if await run_in_thread(self._lease.hold):
                await runs.look()
            else:
                await runs.end()
        except (*UNREACHABLE, RedisError) as error:
            logger.warning("batches: the broker does not answer: %s", error)
        except Exception:
            logger.exception("batches: a round failed")

    async def _let_go(self) -> None:
        try:
            await run_in_thread(self._lease.let_go)
        except (*UNREACHABLE, RedisError):
            pass


class Runs:
    """The batches that are run by this process."""

    def __init__(self) -> None:
        self._most = settings.BATCH_CONCURRENCY
        self._gates = Gates(self._most)
        self._places = Places(MAX_ANSWERED, MAX_ANSWERED_OF_OWNER)
        self._runs: dict[str, BatchRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rests_until: dict[str, float] = {}

    async def look(self) -> None:
        """Begin what nobody runs, and stop what should be."""
        now = time.monotonic()
        self._rests_until = {one: at for one, at in self._rests_until.items() if at > now}
        for batch in await run_in_thread(partial(list_open, MAX_OPEN)):
            if batch.id in self._runs:
                if batch.state == BatchState.CANCELLING:
                    self._runs[batch.id].stop()
            elif batch.id not in self._rests_until:
                self._begin(batch.id)

    async def end(self) -> None:
        """Stop all, and write what is answered."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, batch_id: str) -> None:
        run = BatchRun(batch_id, self._gates, self._places, self._most)
        task = asyncio.create_task(run.run())
        self._runs[batch_id], self._tasks[batch_id] = run, task
        task.add_done_callback(partial(self._on_end, batch_id))

    def _on_end(self, batch_id: str, task: "asyncio.Task[None]") -> None:
        del self._runs[batch_id], self._tasks[batch_id]
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._rests_until[batch_id] = time.monotonic() + REST_SECONDS
        if not isinstance(error, BatchLost):
            logger.error("batch %s: its run failed and is begun anew", batch_id, exc_info=error)
