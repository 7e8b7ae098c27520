"""How requests wait for a replica: one is asked for, and they go on when it is ready."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import Prospect
from inference.relay.gateway import GatewayRelay, NoReadyReplica, WakeView

Answer = TypeVar("Answer")
LOOK_SECONDS = 0.25
SHARED_SECONDS = 0.1
PAUSE_SECONDS = 0.02
# How long a bad outlook may last that can change at any moment, or may be older than the request.
BLOCKED_SECONDS = 5.0
# A control worker that restarts is back by then.
UNCONTROLLED_SECONDS = 15.0
UNKNOWN_PATIENCE_SECONDS = 60.0
# When to ask again where nothing starts before an operator acts, or memory gets free.
HELP_SECONDS = 30.0
# Of one gateway and deployment: each holds a request in memory.
MAX_WAITING = 512
TOO_LATE = "No replica of this model became ready in time."
STOPPING = "The server is restarting. Please try again."


class Wakening:
    """Repeats what fails for want of a replica, as long as the controller gives hope of one."""

    def __init__(self, relay: GatewayRelay) -> None:
        self._relay = relay
        self._looks: dict[str, asyncio.Task[WakeView]] = {}
        self._num_waiting: Counter[str] = Counter()
        self._stopping = asyncio.Event()

    async def retry(
        self,
        deployment: str,
        call: Callable[[], Awaitable[Answer]],
        *,
        deadline: float = float("inf"),
    ) -> Answer:
        """Call until it finds a replica, or raises anything else; ``deadline`` is Unix time."""
        began_at = time.monotonic()
        while True:
            try:
                return await call()
            except NoReadyReplica:
                with self._place(deployment):
                    await self._wait(deployment, began_at, deadline)
                    # The call and the look may disagree for a moment.
                    await asyncio.sleep(PAUSE_SECONDS)

    @property
    def has_waiting(self) -> bool:
        """Whether anybody waits."""
        return bool(self._num_waiting)

    def stop(self) -> None:
        """Let nobody wait any more."""
        self._stopping.set()

    @contextmanager
    def _place(self, deployment: str) -> Iterator[None]:
        """Count who waits; raises QUEUE_FULL where too many do."""
        if self._num_waiting[deployment] >= MAX_WAITING:
            raise EngineError(
                ErrorCode.QUEUE_FULL,
                f"Too many requests wait for this model to be loaded ({MAX_WAITING}).",
                is_retryable=True,
            )
        self._num_waiting[deployment] += 1
        try:
            yield
        finally:
            self._num_waiting[deployment] -= 1
            if not self._num_waiting[deployment]:
                del self._num_waiting[deployment]

    async def _wait(self, deployment: str, began_at: float, deadline: float) -> None:
        """Return when a replica is ready; raise NoReadyReplica when there is no more hope."""
        blocked_since: float | None = None
        while True:
            view = await self._look(deployment)
            now = time.monotonic()
            if view.num_ready and now - began_at < _patience_of(view):
                return
            if _is_promising(view):
                blocked_since = None
            elif blocked_since is None:
                blocked_since = now
            _judge(view, now - began_at, now - (blocked_since or now))
            if time.time() >= deadline:
                raise NoReadyReplica(TOO_LATE)
            await self._pause()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._stopping.wait()
        except TimeoutError:
            return
        raise NoReadyReplica(STOPPING)

    async def _look(self, deployment: str) -> WakeView:
        """Look once for all that wait for a deployment now."""
        look = self._looks.get(deployment)
        if look is None:
            loop = asyncio.get_running_loop()
            look = self._looks[deployment] = loop.create_task(self._relay.wake(deployment))
            # Whoever asked may have left: then nobody else reads how it ended.
            look.add_done_callback(lambda done: done.cancelled() or done.exception())
            loop.call_later(SHARED_SECONDS, self._looks.pop, deployment, None)
        return await asyncio.shield(look)


def _is_promising(view: WakeView) -> bool:
    is_coming = view.outlook is not None and view.outlook.prospect is Prospect.COMING
    return view.has_controller and is_coming


def _judge(view: WakeView, waited_seconds: float, blocked_seconds: float) -> None:
    """Raise when waiting makes no more sense."""
    outlook = view.outlook
    if outlook is not None and outlook.prospect is Prospect.HOPELESS:
        what = _say("This model cannot be used now", outlook.reason)
        raise NoReadyReplica(what, retry_after=HELP_SECONDS)
    if not view.has_controller:
        if blocked_seconds >= UNCONTROLLED_SECONDS:
            what = _say("No replica is ready", "No control worker is running.")
            raise NoReadyReplica(what, retry_after=HELP_SECONDS)
    elif blocked_seconds >= BLOCKED_SECONDS:
        what = _say("No replica is ready", outlook.reason if outlook else "")
        raise NoReadyReplica(what, retry_after=HELP_SECONDS)
    if waited_seconds >= _patience_of(view):
        raise NoReadyReplica(TOO_LATE)


def _patience_of(view: WakeView) -> float:
    return view.outlook.patience_seconds if view.outlook else UNKNOWN_PATIENCE_SECONDS


def _say(what: str, why: str) -> str:
    return f"{what}: {why}" if why else f"{what}."
