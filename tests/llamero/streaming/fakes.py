"""A data plane without engine or broker: it answers as told, and remembers what it was asked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import ClassVar

from inference.protocol.errors import EngineError
from inference.protocol.events import (
    TERMINAL,
    Done,
    Event,
    FinishReason,
    Started,
    Timings,
    Tokens,
)
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ModelFacts
from inference.protocol.text import RenderChat, Rendered
from inference.relay.limits import Meter, Stake
from tests.llamero.played_stream import PlayedStream, count_reasoning

NUM_PROMPT_TOKENS = 7


class FakeStream(PlayedStream):
    """One job: a piece of text each ``step_seconds``, until it is used up or stopped."""

    def __init__(
        self,
        job: GenerationJob,
        pieces: tuple[str, ...],
        step_seconds: float,
        *,
        is_slot_taken: bool = False,
    ) -> None:
        self.job = job
        self.is_cancelled = False
        self.is_closed = False
        self.told: list[Event] = []
        self._pieces = pieces
        self._step_seconds = step_seconds
        self._stopped = asyncio.Event()
        self._has_slot = asyncio.Event()
        if not is_slot_taken:
            self.release()

    def release(self) -> None:
        """Give it the slot that it waits for."""
        self._has_slot.set()

    async def play(self) -> AsyncIterator[Event]:
        """Give the events of the job, and remember them."""
        await self._has_slot.wait()
        async for event in self._speak():
            self.told.append(event)
            yield event

    async def _speak(self) -> AsyncIterator[Event]:
        yield Started(0, 3)
        num_told = 0
        told: list[Event] = []
        for piece in self._pieces:
            if self._step_seconds or self._stopped.is_set():
                await self._rest()
            if self._stopped.is_set():
                break
            num_told += 1
            told.append(Tokens(piece, (num_told,)))
            yield told[-1]
        is_whole = num_told == len(self._pieces)
        reason = FinishReason.EOS if is_whole else FinishReason.CANCELLED
        end = Done(reason, NUM_PROMPT_TOKENS, 3, num_told, timings=Timings(8.0, 20.0, 4))
        yield count_reasoning(self.job, [*told, end])[-1]

    async def cancel(self) -> None:
        """Stop at the next step."""
        self.is_cancelled = True
        self._stopped.set()

    async def close(self) -> None:
        """Stop for good, unless it is durable."""
        self.is_closed = True
        if not self.job.is_durable:
            self._stopped.set()

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(self._step_seconds):
                await self._stopped.wait()
        except TimeoutError:
            pass


class ReplayedStream(PlayedStream):
    """A durable job once more, from its first event on."""

    def __init__(self, origin: FakeStream) -> None:
        self.job = origin.job
        self.is_closed = False
        self._origin = origin

    async def play(self) -> AsyncIterator[Event]:
        """Give what was told, and then what is."""
        num_given = 0
        while True:
            for event in self._origin.told[num_given:]:
                num_given += 1
                yield event
                if isinstance(event, TERMINAL):
                    return
            await asyncio.sleep(0.005)

    async def cancel(self) -> None:
        """Stop the job."""
        await self._origin.cancel()

    async def close(self) -> None:
        """Leave; the job goes on."""
        self.is_closed = True


class FakeRights:
    """Who follows which owner."""

    def __init__(self) -> None:
        self.followers: dict[str, list[Callable[[], None]]] = {}

    def follow(self, owner: str, end: Callable[[], None]) -> Callable[[], None]:
        """Remember who is to be told."""
        followers = self.followers.setdefault(owner, [])
        followers.append(end)
        return lambda: followers.remove(end) if end in followers else None

    def end(self, owner: str) -> None:
        """Tell all followers of an owner."""
        for follower in tuple(self.followers[owner]):
            follower()


class FakeWrongKeys:
    """Counts the same for all addresses."""

    number = 0

    async def count(self, place: str) -> tuple[int, float]:
        """Count one more."""
        self.number += 1
        return self.number, 60.0


@dataclass
class FakeDispatcher:
    """What the gateway asks for, without a data plane behind it."""

    stream_kind: ClassVar[type[FakeStream]] = FakeStream
    pieces: tuple[str, ...] = ("Hello", ", ", "world")
    step_seconds: float = 0.0
    refusal: EngineError | None = None
    is_render_stuck: bool = False
    is_slot_taken: bool = False
    context_length: int = 64
    gateway_id: str = "test"
    chat_template: str = ""
    questions: list[RenderChat] = field(default_factory=list)
    streams: list[FakeStream] = field(default_factory=list)
    kept: dict[tuple[str, str], bytes] = field(default_factory=dict)
    rights: FakeRights = field(default_factory=FakeRights)
    wrong_keys: FakeWrongKeys = field(default_factory=FakeWrongKeys)

    async def ask(
        self, deployment: str, question: RenderChat, *, timeout: float = 10.0
    ) -> Rendered:
        """Render any chat to the same few tokens."""
        self.questions.append(question)
        if self.is_render_stuck:
            await asyncio.Event().wait()
        return Rendered(prompt="…", tokens=tuple(range(NUM_PROMPT_TOKENS)))

    async def facts(self, deployment: str, *, waits: bool = True) -> ModelFacts:
        """Describe a small model."""
        return ModelFacts(
            num_vocab=100, context_length=self.context_length, chat_template=self.chat_template
        )

    async def submit(
        self,
        job: GenerationJob,
        *,
        max_queue: int,
        max_owner_queue: int,
        bill: bytes = b"",
        stake: Stake | None = None,
        meter: Meter | None = None,
    ) -> FakeStream:
        """Take a job, or refuse it."""
        if self.refusal is not None:
            raise self.refusal
        stream = self.stream_kind(
            job, self.pieces, self.step_seconds, is_slot_taken=self.is_slot_taken
        )
        self.streams.append(stream)
        return stream

    async def keep_run(self, run: str, owner: str, document: bytes, deadline: float) -> None:
        """Keep what tells a run anew."""
        self.kept[owner, run] = document

    async def find_run(self, run: str, owner: str) -> bytes | None:
        """Give what was kept."""
        return self.kept.get((owner, run))

    async def attach(self, job_id: str, owner: str) -> ReplayedStream | None:
        """Follow a durable job once more."""
        for stream in self.streams:
            if (stream.job.id, stream.job.owner) == (job_id, owner) and stream.job.is_durable:
                return ReplayedStream(stream)
        return None

    async def history(self, job_id: str) -> list[Event]:
        """Give what a job has told."""
        return [event for one in self.streams if one.job.id == job_id for event in one.told]
