"""The gateway's side of the relay: async calls that answer or raise within 3 seconds."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import msgspec

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Event
from inference.protocol.jobs import IDLE_PRIORITY, GenerationJob, Job, decode_job, encode_job
from inference.protocol.replicas import Outlook, ReplicaStatus
from inference.protocol.text import TextRequest
from inference.relay.connect import UNREACHABLE, AsyncRedis, RedisError, text_of
from inference.relay.endings import CRASHED_EVENT
from inference.relay.history import read_event
from inference.relay.keys import (
    DEADLINE_GRACE_SECONDS,
    DURABLE_RETENTION_SECONDS,
    LEASE_SECONDS,
    REPLICAS,
    conversation_key,
    events_key,
    job_key,
    kept_key,
    replica_key,
    waiting_key,
)
from inference.relay.limits import Meter, Metering, Reading, ReadSpent, Stake, no_ledger
from inference.relay.marks import prefix_marks
from inference.relay.reaper import ReplicaEnd
from inference.relay.registry import decode_status, select_statuses
from inference.relay.scripts import Argument, script

logger = logging.getLogger(__name__)
CALL_SECONDS = 2.5
MAX_PRIORITY = 200
MAX_GATEWAYS = 4
MAX_QUESTIONS = 1000
POLL_EVENTS = 512
_outlooks = msgspec.json.Decoder(Outlook)


@dataclass(frozen=True, slots=True)
class Admission:
    """A job that was accepted: how many are before it, and which replica needs a ticket for it.

    ``ticket_for`` is empty while all slots are busy. ``has_spare`` tells that others have a free
    slot, too: they should get a ticket if that one does not take the job at once.
    ``wait_seconds`` is the expected wait, None while nothing is known. ``readings`` are what is
    left of the limits that were asked for.
    """

    num_ahead: int
    ticket_for: str = ""
    has_spare: bool = False
    wait_seconds: float | None = None
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as it is kept: ``state`` is waiting, running, done, or empty when it is unknown.

    ``ticket_for`` is the replica that should be woken for it, if any.
    """

    state: str
    replica: str
    is_lease_alive: bool
    ticket_for: str
    num_ahead: int
    wait_seconds: float | None
    events: tuple[tuple[int, Event], ...]


@dataclass(frozen=True, slots=True)
class WakeView:
    """A deployment that was asked for: its ready replicas, and what the controller says of it."""

    num_ready: int
    has_controller: bool
    outlook: Outlook | None


@dataclass(frozen=True, slots=True)
class SpareView:
    """The slots of a deployment, those that run nothing, and how many jobs wait for one.

    What waits in the lowest class is not counted.
    """

    num_slots: int
    num_free: int
    num_waiting: int


class NoReadyReplica(EngineError):
    """No replica can take work now; one may be on its way."""

    def __init__(
        self,
        message: str = "No replica of this model is ready.",
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(
            ErrorCode.NO_READY_REPLICA, message, is_retryable=True, retry_after=retry_after
        )


class GatewayRelay:
    """Calls of one gateway process and event loop. Every failure is an EngineError."""

    def __init__(self, redis: AsyncRedis, read_spent: ReadSpent = no_ledger) -> None:
        self._redis = redis
        self.metering = Metering(self.run, read_spent)
        self._encoder = msgspec.json.Encoder()

    async def submit(
        self,
        job: Job,
        *,
        max_queue: int,
        max_owner_queue: int | None = None,
        bill: bytes = b"",
        stake: Stake | None = None,
        meter: Meter | None = None,
    ) -> Admission:
        """Put a job into its waiting set, once however often it is asked.

        At most ``max_queue`` jobs wait beyond those that find a free slot, of one owner at most
        ``max_owner_queue``. The ``bill`` comes back with what the job used: see relay/usage.py.
        The ``meter`` of a request comes with its first job, and takes what all of them may use;
        the ``stake`` is what this one may use, for limits that are new later.
        """
        priority = max(IDLE_PRIORITY, min(MAX_PRIORITY, job.priority))
        row = (job.id, job.deployment, job.owner, job.gateway, job.deadline, encode_job(job))
        bounds = (max_queue, max_queue if max_owner_queue is None else max_owner_queue)
        durable = int(isinstance(job, GenerationJob) and job.is_durable)
        rank = (job.cost, priority, job.attempt, *bounds, job.fingerprint, durable)
        arguments = (*row, *rank, " ".join(prefix_marks(job)), bill, str(stake or ""))
        answer, readings = await self.metering.run("submit", arguments, meter)
        status, num_jobs, ticket_for, has_spare, wait_ms = answer[:5]
        wait = _seconds(wait_ms)
        if status != b"ok":
            raise _refusal(status, int(num_jobs), wait)
        return Admission(int(num_jobs), text_of(ticket_for), bool(has_spare), wait, readings)

    async def attach(self, job: str, owner: str, gateway: str) -> GenerationJob | None:
        """Have a durable job of the owner told to this gateway too; None where there is none.

        A gateway that is told no more still finds out by itself, later.
        """
        payload = await self.run("attach", (job, owner, gateway, MAX_GATEWAYS))
        if payload is None:
            return None
        found = decode_job(payload)
        return found if isinstance(found, GenerationJob) else None

    async def greet(self, gateway: str) -> None:
        """Show that the gateway lives: without this each second its jobs are soon stopped."""
        await self.run("greet", (gateway,))

    async def cancel(self, jobs: Sequence[str], *, is_abandoned: bool) -> tuple[str, ...]:
        """Stop jobs, waiting or running. The keys of an abandoned one go at its end.

        Tells of each what became of it: gone (unknown), done, dropped or asked.
        """
        outcomes = await self.run("cancel", (int(is_abandoned), *jobs))
        return tuple(map(text_of, outcomes))

    async def keep(self, run: str, owner: str, document: bytes, deadline: float) -> None:
        """Keep what tells a resumable answer anew, as long as the events of its jobs."""
        expires = ceil(deadline) + DEADLINE_GRACE_SECONDS + DURABLE_RETENTION_SECONDS
        await self._guard(self._redis.set(kept_key(owner, run), document, exat=expires))

    async def find_kept(self, run: str, owner: str) -> bytes | None:
        """Give what was kept of an answer; None where the owner has no such run."""
        document: bytes | None = await self._guard(self._redis.get(kept_key(owner, run)))
        return document

    async def forget_conversation(self, conversation: str, owner: str) -> None:
        """Let the owner's conversation be unknown."""
        await self._guard(self._redis.unlink(conversation_key(owner, conversation)))

    async def release(self, jobs: Iterable[str]) -> None:
        """Delete the keys of jobs whose end was delivered."""
        keys = [key for job in jobs for key in (job_key(job), events_key(job))]
        await self._guard(self._redis.unlink(*keys))

    async def poll(self, wanted: Sequence[tuple[str, int]]) -> list[JobView]:
        """Look at jobs in one call, each with its events from a seq on (a bounded number)."""
        arguments: list[Argument] = [POLL_EVENTS]
        for job, first_seq in wanted:
            arguments += (job, first_seq)
        return [_read_view(answer) for answer in await self.run("poll", arguments)]

    async def reap_if_lost(self, replica: str) -> int:
        """Queue again the jobs of a replica whose lease is gone; gives their number."""
        queued, ended = await self.run("reap", (replica, int(ReplicaEnd.KILLED), 1, 0))
        return len(queued) + len(ended)

    async def ask(self, deployment: str, request: TextRequest) -> None:
        """Put a question to any ready replica; the answer comes over the gateway's channel."""
        question = self._encoder.encode(request)
        status = await self.run("ask", (deployment, question, MAX_QUESTIONS))
        if status == b"full":
            raise EngineError(
                ErrorCode.QUEUE_FULL, "Too many requests wait for this model.", is_retryable=True
            )
        if status != b"ok":
            raise NoReadyReplica

    async def wake(self, deployment: str) -> WakeView:
        """Ask for a replica of a deployment; safe to repeat, and needed while one waits for it."""
        num_ready, has_controller, outlook = await self.run("wake", (deployment,))
        return WakeView(int(num_ready), bool(has_controller), read_outlook(outlook))

    async def replicas(self, *, silent_seconds: float = LEASE_SECONDS) -> tuple[ReplicaStatus, ...]:
        """Give the last heartbeats of all replicas that have not been silent for longer."""
        seconds, microseconds = await self._guard(self._redis.time())
        oldest = seconds + microseconds / 1_000_000 - silent_seconds
        names = await self._guard(self._redis.zrangebyscore(REPLICAS, oldest, "+inf"))
        pipe = self._redis.pipeline(transaction=False)
        for name in names:
            pipe.hget(replica_key(text_of(name)), "status")
        found = await self._guard(pipe.execute()) if names else []
        return select_statuses(map(decode_status, found), None)

    async def num_waiting(self, deployment: str) -> int:
        """Count the waiting jobs of a deployment."""
        return int(await self._guard(self._redis.zcard(waiting_key(deployment))))

    async def spare(self, deployment: str) -> SpareView:
        """Tell what the lowest class of jobs might use."""
        return SpareView(*await self.run("spare", (deployment,)))

    async def ping(self) -> None:
        """Raise unless the server answers."""
        await self._guard(self._redis.ping())

    async def run(self, name: str, arguments: Sequence[Argument]) -> Any:
        """Run a script, bounded in time."""
        return await self._guard(script(name).run_async(self._redis, arguments))

    async def _guard(self, call: Any) -> Any:
        """Bound a call in time and name its failure."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await call
        except (*UNREACHABLE, TimeoutError) as error:
            raise broker_unavailable() from error
        except RedisError as error:
            # Out of memory, read-only, loading: the server is there and cannot do its work.
            logger.error("the server refused a call: %s", error)
            raise broker_unavailable() from error


def _refusal(status: bytes, num_waiting: int, wait_seconds: float | None) -> EngineError:
    """Say why a job was not queued."""
    match status:
        case b"full":
            return EngineError(
                ErrorCode.QUEUE_FULL,
                f"Too many requests wait for this model ({num_waiting}).",
                is_retryable=True,
                retry_after=wait_seconds,
            )
        case b"owner_full":
            return EngineError(
                ErrorCode.KEY_QUEUE_FULL,
                f"Too many requests of this key wait for this model ({num_waiting}).",
                is_retryable=True,
                retry_after=wait_seconds,
            )
        case b"poison":
            return EngineError(ErrorCode.REQUEST_CRASHED_ENGINE, CRASHED_EVENT.message)
        case b"unrecorded":
            return broker_unavailable()
        case b"cancelled":
            return EngineError(ErrorCode.REQUEST_CANCELLED, "The request was cancelled.")
    return NoReadyReplica()


def broker_unavailable() -> EngineError:
    """Say that the server cannot be reached or cannot do its work."""
    return EngineError(
        ErrorCode.BROKER_UNAVAILABLE,
        "The service cannot take requests right now. Please try again.",
        is_retryable=True,
    )


def read_outlook(raw: bytes | str | None) -> Outlook | None:
    """Read what the controller says; None for nothing, or the word of another version."""
    try:
        return _outlooks.decode(raw) if raw else None
    except msgspec.DecodeError:
        return None


def _seconds(milliseconds: int) -> float | None:
    """Read a wait; a negative one is not known."""
    return None if milliseconds < 0 else milliseconds / 1000


def _read_view(answer: list[Any]) -> JobView:
    state, replica, is_lease_alive, ticket_for, num_ahead, wait_ms = answer[:6]
    events = tuple((answer[i], read_event(answer[i + 1])) for i in range(6, len(answer), 2))
    return JobView(
        state.decode(),
        replica.decode(),
        bool(is_lease_alive),
        text_of(ticket_for),
        num_ahead,
        _seconds(wait_ms),
        events,
    )
