"""A fake job stream that is written as an async generator of its events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from msgspec.structs import replace

from inference.protocol.events import Done, Event, Tokens
from inference.relay.limits import Reading
from inference.text.reasoning_counter import make_counter


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


def count_reasoning(job: Any, script: Sequence[Any]) -> list[Any]:
    """Give the events of a job with its tokens of reasoning counted, as an engine counts them."""
    if getattr(job, "reasoning", None) is None:
        return list(script)
    counter = make_counter(job.reasoning)
    counted: list[Any] = []
    for event in script:
        if isinstance(event, Tokens):
            counter.feed(event.text)
        elif isinstance(event, Done):
            counted.append(replace(event, num_reasoning_tokens=counter.num_tokens))
            continue
        counted.append(event)
    return counted
