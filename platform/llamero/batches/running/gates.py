"""How many requests of batches may run in a deployment now: only as many as nobody else misses.

Requests of batches do not queue. They enter where slots are free: all but one where nobody else
runs anything, else half of those that are free. When anybody else waits and no slot is free, those
that began last make room at once, and are made again later.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from inference.protocol.errors import EngineError
from inference.relay.gateway import SpareView
from llamero import dispatch

Outcome = TypeVar("Outcome")
LOOK_SECONDS = 0.1
# A slot whose job has ended sleeps a moment later.
SETTLE_SECONDS = 0.005
# How long one that makes room may take to be gone.
YIELD_SECONDS = 0.5
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0


@dataclass(eq=False, slots=True)
class _Entrant:
    owner: str
    admission: "asyncio.Future[None]"


class Gate:
    """The way into one deployment, for all batches; ``limit`` is the most that may run."""

    def __init__(self, deployment: str, limit: int) -> None:
        self._deployment = deployment
        self._limit = limit
        self._entrants: list[_Entrant] = []
        self._running: dict[asyncio.Task[object], str] = {}
        self._yielded_at: list[float] = []
        self._pause_seconds = FIRST_PAUSE_SECONDS
        self._paused_until = 0.0
        self._change = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    async def run(self, owner: str, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Do some work when there is room, again and again where it had to make room."""
        while True:
            await self._enter(owner)
            task = asyncio.get_running_loop().create_task(_await(work))
            self._running[task] = owner
            try:
                await asyncio.wait((task,))
            finally:
                # Cancelled from outside: what runs for it ends too.
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                del self._running[task]
                self._change.set()
            if not task.cancelled():
                return task.result()

    def pause(self) -> None:
        """Let nothing in for a while: the deployment answers nobody. Longer each time."""
        now = time.monotonic()
        if now >= self._paused_until:
            self._paused_until = now + self._pause_seconds
            self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)

    def note_success(self) -> None:
        """Note that the deployment answers."""
        self._pause_seconds = FIRST_PAUSE_SECONDS

    async def _enter(self, owner: str) -> None:
        loop = asyncio.get_running_loop()
        entrant = _Entrant(owner, loop.create_future())
        self._entrants.append(entrant)
        self._change.set()
        if self._watching is None or self._watching.done():
            self._watching = loop.create_task(self._watch())
        try:
            await entrant.admission
        finally:
            if entrant in self._entrants:
                self._entrants.remove(entrant)

    async def _watch(self) -> None:
        """Look as long as there is anybody to look for."""
        while self._entrants or self._running:
            self._change.clear()
            if time.monotonic() >= self._paused_until:
                try:
                    await self._look()
                except EngineError:
                    self.pause()
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._change.wait()
                await asyncio.sleep(SETTLE_SECONDS)
            except TimeoutError:
                pass

    async def _look(self) -> None:
        """Let in as many as there is room for, or have some make room."""
        view = await dispatch.get_dispatcher().spare(self._deployment)
        num_running = len(self._running)
        for _ in range(min(room_for(view, num_running), self._limit - num_running)):
            if not self._entrants:
                return
            # Whose owner has the least at work comes first.
            running = Counter(self._running.values())
            entrant = min(self._entrants, key=lambda one: running[one.owner])
            self._entrants.remove(entrant)
            if not entrant.admission.done():
                entrant.admission.set_result(None)
                await asyncio.sleep(0)
        self._make_room(view)

    def _make_room(self, view: SpareView) -> None:
        now = time.monotonic()
        self._yielded_at = [at for at in self._yielded_at if now - at < YIELD_SECONDS]
        num_wanted = 0 if view.num_free else view.num_waiting - len(self._yielded_at)
        for task in list(reversed(self._running))[: max(0, num_wanted)]:
            task.cancel()
            self._yielded_at.append(now)


def room_for(view: SpareView, num_running: int) -> int:
    """Tell how many more may begin, beside so many that run for batches.

    One may where nothing serves yet: it has the model loaded.
    """
    if not view.num_slots:
        return max(0, 1 - num_running)
    if view.num_waiting:
        return 0
    num_busy = view.num_slots - view.num_free
    # Those that have begun and have no slot yet will take one.
    num_free = view.num_free - max(0, num_running - num_busy)
    if num_busy > num_running:
        return max(0, num_free // 2)
    return num_free - 1 if view.num_slots > 1 else num_free


class Gates:
    """The gates of all deployments, made as they are needed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._gates: dict[str, Gate] = {}

    def of(self, deployment: str) -> Gate:
        """Give the gate of a deployment."""
        gate = self._gates.get(deployment)
        if gate is None:
            gate = self._gates[deployment] = Gate(deployment, self._limit)
        return gate


async def _await(work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    return await work()
