"""What no event tells: gaps, silence, lost replicas, deadlines, a server that stays away."""

import asyncio
import logging
import time

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Failed
from inference.relay.endings import LATE_EVENT, LOST_EVENT
from inference.relay.gateway import GatewayRelay, JobView
from llamero.dispatch.farewells import Farewells
from llamero.dispatch.followed import Followed
from llamero.dispatch.stream import JobStream
from llamero.dispatch.tickets import TicketOffice

logger = logging.getLogger(__name__)
TICK_SECONDS = 0.25
GREET_SECONDS = 1.0
SILENT_SECONDS = 2.0
# A replica with a free slot takes a job in milliseconds: after this, others are woken for it.
START_SECONDS = 0.3
SUSPECT_SECONDS = 3.0
STUCK_SECONDS = 10.0
DEADLINE_SLACK_SECONDS = 0.5
AWAY_SECONDS = 30.0
AWAY_EVENT = Failed(
    ErrorCode.BROKER_UNAVAILABLE, "The service lost its connection to the engine.", True
)


class Watcher:
    """Looks after all streams of a gateway: one call re-reads every stream that needs it."""

    def __init__(
        self,
        relay: GatewayRelay,
        gateway: str,
        streams: Followed,
        farewells: Farewells,
        tickets: TicketOffice,
    ) -> None:
        self._relay = relay
        self._gateway = gateway
        self._streams = streams
        self._farewells = farewells
        self._tickets = tickets
        self._polling: asyncio.Task[None] | None = None
        self._away_since: float | None = None
        self._has_work = asyncio.Event()
        self._greeted_at = 0.0
        self._ticked_at = 0.0
        self._greeting: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str:
        """What is wrong, if streams are not looked after."""
        age = time.monotonic() - self._ticked_at
        is_stuck = self._has_work.is_set() and age > STUCK_SECONDS
        return f"streams were not looked after for {age:.0f} s" if is_stuck else ""

    async def run(self) -> None:
        """Tick as long as there are streams, until cancelled."""
        while True:
            await self._has_work.wait()
            await asyncio.sleep(TICK_SECONDS)
            self._tick()
            self._ticked_at = time.monotonic()
            self._greet_when_due(time.monotonic())
            if not self._streams:
                self._has_work.clear()

    async def close(self) -> None:
        """Stop reading."""
        for task in (self._polling, self._greeting):
            if task is not None:
                task.cancel()
                await asyncio.wait((task,))

    def start_watching(self) -> None:
        """Note that there is a stream to look after."""
        if not self._has_work.is_set():
            self._ticked_at = time.monotonic()
            self._away_since = None
        self._has_work.set()

    def request_fill(self) -> None:
        """Read missing events soon."""
        if self._polling is None or self._polling.done():
            self._polling = asyncio.get_running_loop().create_task(self._poll())

    def expect_start(self, stream: JobStream) -> None:
        """Look after a job soon that a free slot should take at once."""
        asyncio.get_running_loop().call_later(START_SECONDS, self._check_start, stream)

    def reread_all(self) -> None:
        """Treat every stream as silent: messages may have been lost."""
        for stream in self._streams:
            stream.last_poll = 0.0
            stream.last_news = 0.0
        self.request_fill()

    def _check_start(self, stream: JobStream) -> None:
        if stream in self._streams and stream.next_seq == 1 and not stream.is_ended:
            stream.last_poll = stream.last_news = 0.0
            self.request_fill()

    def _greet_when_due(self, now: float) -> None:
        if now - self._greeted_at >= GREET_SECONDS and (
            self._greeting is None or self._greeting.done()
        ):
            self._greeted_at = now
            self._greeting = asyncio.get_running_loop().create_task(self._greet())

    async def _greet(self) -> None:
        """Show that this gateway lives, so that its jobs go on."""
        try:
            await self._relay.greet(self._gateway)
        except EngineError as error:
            logger.debug("the server did not hear that this gateway lives: %s", error)
        else:
            # Polls alone would not tell: there are none while every stream gets what it waits for.
            self._away_since = None

    def _tick(self) -> None:
        self._farewells.retry()
        now = time.time()
        for stream in self._streams:
            if not stream.is_ended and now > stream.job.deadline + DEADLINE_SLACK_SECONDS:
                stream.end(LATE_EVENT)
                self._farewells.cancel(stream.job, is_abandoned=True)
        if any(_needs_poll(stream, time.monotonic()) for stream in self._streams):
            self.request_fill()

    async def _poll(self) -> None:
        """Re-read streams until none is behind."""
        while True:
            now = time.monotonic()
            chosen = [stream for stream in self._streams if _needs_poll(stream, now)]
            if not chosen:
                return
            for stream in chosen:
                stream.last_poll = now
            try:
                views = await self._relay.poll([(s.job.id, s.next_seq) for s in chosen])
            except EngineError:
                self._note_away(now)
                return
            self._away_since = None
            for stream, view in zip(chosen, views, strict=True):
                for seq, event in view.events:
                    stream.accept(seq, event)
            await self._judge(list(zip(chosen, views, strict=True)))

    def _note_away(self, now: float) -> None:
        """Suspend every suspicion while the server is away; give up when it stays away."""
        if self._away_since is None:
            self._away_since = now
        has_given_up = now - self._away_since > AWAY_SECONDS
        for stream in self._streams:
            stream.suspect_since = None
            if has_given_up:
                stream.end(AWAY_EVENT)

    async def _judge(self, seen: list[tuple[JobStream, JobView]]) -> None:
        """Act on jobs that wait for a ticket or whose end will not come by itself."""
        sleepers: set[str] = set()
        suspects: set[str] = set()
        for stream, view in seen:
            stream.num_ahead, stream.wait_seconds = view.num_ahead, view.wait_seconds
            if view.ticket_for:
                sleepers.add(view.ticket_for)
            is_sound = view.state == "waiting" or view.is_lease_alive or bool(view.events)
            if is_sound or stream.is_ended:
                stream.suspect_since = None
            elif _has_been_suspect(stream):
                if view.state == "running":
                    suspects.add(view.replica)
                else:
                    # Unknown or ended without its last event: the server lost data.
                    stream.end(LOST_EVENT)
        for replica in sleepers:
            self._tickets.send(replica)
        for replica in suspects:
            await self._reap(replica)

    async def _reap(self, replica: str) -> None:
        try:
            num_jobs = await self._relay.reap_if_lost(replica)
        except EngineError:
            return
        logger.warning("replica %s is lost, its %d jobs wait again", replica, num_jobs)


def _needs_poll(stream: JobStream, now: float) -> bool:
    if stream.is_ended or not stream.is_submitted or not stream.has_room:
        return False
    if stream.is_behind:
        return True
    return now - stream.last_news > SILENT_SECONDS and now - stream.last_poll > SILENT_SECONDS


def _has_been_suspect(stream: JobStream) -> bool:
    """Start or continue a suspicion; True once it has lasted long enough to act on."""
    now = time.monotonic()
    if stream.suspect_since is None:
        stream.suspect_since = now
    return now - stream.suspect_since >= SUSPECT_SECONDS
