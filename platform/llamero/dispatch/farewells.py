"""How jobs are let go: cancelled when nobody wants them, released when their end was delivered."""

import asyncio
import logging
import time

from inference.protocol.errors import EngineError
from inference.protocol.jobs import Job
from inference.relay.gateway import GatewayRelay

logger = logging.getLogger(__name__)
RELEASE_PAUSE_SECONDS = 0.02
CLOSE_SECONDS = 1.0


class Farewells:
    """Sends cancels at once and releases in small batches, behind the back of the requests.

    A cancel that cannot be sent is tried again until the job's deadline; a release is not, since
    the keys expire by themselves.
    """

    def __init__(self, relay: GatewayRelay) -> None:
        self._relay = relay
        self._cancels: dict[str, tuple[bool, float]] = {}
        self._releases: set[str] = set()
        self._cancelling: asyncio.Task[None] | None = None
        self._releasing: asyncio.Task[None] | None = None

    def cancel(self, job: Job, *, is_abandoned: bool) -> None:
        """Stop a job wherever it is. Nobody reads an abandoned job's events any more."""
        was_abandoned = self._cancels.get(job.id, (False, 0.0))[0]
        self._cancels[job.id] = (is_abandoned or was_abandoned, job.deadline)
        self.retry()

    def release(self, job: str) -> None:
        """Delete the keys of a job whose end was delivered."""
        self._releases.add(job)
        if self._releasing is None or self._releasing.done():
            self._releasing = asyncio.get_running_loop().create_task(self._send_releases())

    def retry(self) -> None:
        """Send the cancels that are not sent yet."""
        if self._cancels and (self._cancelling is None or self._cancelling.done()):
            self._cancelling = asyncio.get_running_loop().create_task(self._send_cancels())

    async def close(self) -> None:
        """Send what is left, for a moment; what stays unsent ends by its deadline or expires."""
        tasks = [task for task in (self._cancelling, self._releasing) if task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _send_cancels(self) -> None:
        while self._cancels:
            batch = dict(self._cancels)
            try:
                for is_abandoned in (False, True):
                    jobs = [job for job, (flag, _) in batch.items() if flag is is_abandoned]
                    if jobs:
                        await self._relay.cancel(jobs, is_abandoned=is_abandoned)
            except EngineError:
                self._drop_overdue()
                return
            for job, sent in batch.items():
                if self._cancels.get(job) == sent:
                    del self._cancels[job]

    async def _send_releases(self) -> None:
        while self._releases:
            await asyncio.sleep(RELEASE_PAUSE_SECONDS)
            batch, self._releases = self._releases, set()
            try:
                await self._relay.release(batch)
            except EngineError:
                logger.debug("%d jobs are left to expire", len(batch))

    def _drop_overdue(self) -> None:
        now = time.time()
        self._cancels = {job: mark for job, mark in self._cancels.items() if mark[1] > now}
