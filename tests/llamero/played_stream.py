"""A fake job stream that is written as an async generator of its events."""

import asyncio
from collections.abc import AsyncIterator, Callable

from inference.protocol.events import Event
from inference.relay.limits import Reading


class PlayedStream:
    """Plays ``play`` in a task of its own as soon as somebody listens."""

    num_ahead = 0
    wait_seconds: float | None = None
    readings: tuple[Reading, ...] = ()
    _task: asyncio.Task[None] | None = None
    _arrived: list[Event]

    def play(self) -> AsyncIterator[Event]:
        """Give the events of the job."""
        raise NotImplementedError

    def listen(self, listener: Callable[[], None]) -> None:
        self._arrived = []
        self._task = asyncio.get_running_loop().create_task(self._run(listener))

    def take(self) -> list[Event]:
        taken, self._arrived = self._arrived, []
        return taken

    async def _run(self, listener: Callable[[], None]) -> None:
        async for event in self.play():
            self._arrived.append(event)
            listener()
            await asyncio.sleep(0)
