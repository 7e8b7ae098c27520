"""The numbers of the home page as they change: read once a second however many pages are open."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from time import monotonic
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async

from llamero.console.overview import Overview, read_overview
from llamero.console.rates import Speedometer

logger = logging.getLogger(__name__)
PERIOD_SECONDS = 1.0


class Pulse:
    """One reader for all listeners of an event loop. It rests while nobody listens."""

    def __init__(self) -> None:
        self._news = asyncio.Condition()
        self._latest: Overview | None = None
        self._num_listeners = 0
        self._reading: asyncio.Task[None] | None = None

    async def listen(self) -> AsyncGenerator[Overview]:
        """Give the overview again and again; who is slow misses some."""
        self._num_listeners += 1
        if self._reading is None or self._reading.done():
            self._latest = None
            self._reading = asyncio.create_task(self._read())
        try:
            told: Overview | None = None
            while True:
                async with self._news:
                    while self._latest is told:
                        await self._news.wait()
                    told = self._latest
                if told is not None:
                    yield told
        finally:
            self._num_listeners -= 1
            if not self._num_listeners and self._reading is not None:
                self._reading.cancel()
                self._reading = None

    async def _read(self) -> None:
        speedometer = Speedometer()
        read = database_sync_to_async(read_overview)
        while True:
            try:
                overview = await read(speedometer, monotonic())
            except Exception:  # whatever it is, pages are better off with numbers a second later
                logger.exception("the home page's numbers cannot be read")
            else:
                async with self._news:
                    self._latest = overview
                    self._news.notify_all()
            await asyncio.sleep(PERIOD_SECONDS)


_pulses: WeakKeyDictionary[asyncio.AbstractEventLoop, Pulse] = WeakKeyDictionary()


def get_pulse() -> Pulse:
    """Give the pulse of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _pulses:
        _pulses[loop] = Pulse()
    return _pulses[loop]
