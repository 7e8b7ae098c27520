"""How tests read a job's stream: by waiting for what arrives."""

import asyncio
from collections.abc import AsyncIterator, Callable

from inference.protocol.events import TERMINAL, Event
from llamero.dispatch import JobStream
from tests.processes import PATIENCE_SECONDS


async def follow(stream: JobStream) -> AsyncIterator[Event]:
    """Give the events of a stream up to its end."""
    arrived = asyncio.Event()
    stream.listen(arrived.set)
    while True:
        for event in stream.take():
            yield event
            if isinstance(event, TERMINAL):
                return
        await arrived.wait()
        arrived.clear()


async def read(stream: JobStream) -> list[Event]:
    """Give all events of a stream, waiting for its end."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [event async for event in follow(stream)]


async def until(condition: Callable[[], object]) -> None:
    """Return when the condition holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.005)
