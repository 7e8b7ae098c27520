"""How tests read a job's stream: by waiting for what arrives."""

import asyncio
from collections.abc import AsyncIterator

from inference.protocol.events import TERMINAL, Event
from llamero.dispatch import JobStream


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
    async with asyncio.timeout(20):
        return [event async for event in follow(stream)]
