"""A gateway process's connection to the data plane, one per event loop."""

import asyncio
import os
import uuid
from collections.abc import Callable, Sequence
from enum import Enum, auto

from django.conf import settings
from django.utils.module_loading import import_string

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Event, Failed
from inference.protocol.jobs import Job
from inference.protocol.replicas import ModelFacts, ReplicaStatus
from inference.protocol.text import Detokenized, Rendered, TextQuestion, TextReply, Tokenized
from inference.relay.answers import AnswerRelay
from inference.relay.connect import connect_async
from inference.relay.conversations import ConversationRelay
from inference.relay.frames import EventFrame
from inference.relay.gateway import (
    POLL_EVENTS,
    GatewayRelay,
    SpareView,
    broker_unavailable,
)
from inference.relay.limits import Counter, Meter, Reading, ReadSpent, Stake
from inference.relay.subscriber import Subscriber
from inference.relay.wrong_keys import WrongKeyRelay
from llamero.dispatch.farewells import Farewells
from llamero.dispatch.followed import MOST_READERS, Followed
from llamero.dispatch.questions import Questions
from llamero.dispatch.rights import Rights
from llamero.dispatch.statuses import Statuses
from llamero.dispatch.stream import JobStream
from llamero.dispatch.submitter import Submitter
from llamero.dispatch.tickets import TicketOffice, send_ticket
from llamero.dispatch.wakening import Wakening
from llamero.dispatch.watcher import Watcher

LINK_SECONDS = 2.5
# No job has so many events.
LAST_SEQ = 2**53
# Some beats were missed: sooner than the lease, by which others go on with a replica's jobs.
SILENT_SECONDS = 3.5
CROWDED_EVENT = Failed(
    ErrorCode.STREAM_DETACHED, "Too many connections read this stream: it goes on over others."
)


class Cancellation(Enum):
    """What became of jobs that were to be stopped, all together."""

    UNKNOWN = auto()
    TOO_LATE = auto()
    STOPPED = auto()


class Dispatcher:
    """Submits jobs, follows them, asks about text. Use ``get_dispatcher`` to get one.

    Every failure is an EngineError; a server out of reach is one within 3 seconds.
    """

    def __init__(
        self, redis_url: str, *, publish_ticket: Callable[[str], None] = send_ticket
    ) -> None:
        self.gateway_id = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._redis = connect_async(redis_url)
        self._relay = GatewayRelay(self._redis, _read_spent)
        self._answers = AnswerRelay(self._relay)
        self._conversations = ConversationRelay(self._relay)
        self._wrong_keys = WrongKeyRelay(self._relay)
        self._streams = Followed()
        self._tickets = TicketOffice(publish_ticket)
        self._farewells = Farewells(self._relay)
        self._wakening = Wakening(self._relay)
        self._questions = Questions(self._relay, self.gateway_id)
        self._statuses = Statuses(self._relay)
        self._watcher = Watcher(
            self._relay, self.gateway_id, self._streams, self._farewells, self._tickets
        )
        self._rights = Rights(self._streams, self._farewells)
        self._submitter = Submitter(
            self._relay,
            self._streams,
            self._follow,
            farewells=self._farewells,
            tickets=self._tickets,
            watcher=self._watcher,
        )
        self._subscriber = Subscriber(
            redis_url,
            self.gateway_id,
            self._on_message,
            self._watcher.reread_all,
            self._rights.name,
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def ask(
        self, deployment: str, question: TextQuestion, *, timeout: float = 10.0
    ) -> Tokenized | Detokenized | Rendered:
        """Have a replica answer a question about text, without a slot; wait for one if need be.

        ``timeout`` is for the answer.
        """
        await self._link()
        return await self._wakening.retry(
            deployment, lambda: self._questions.ask(deployment, question, timeout)
        )

    async def facts(self, deployment: str, *, waits: bool = True) -> ModelFacts:
        """Give what the loaded model says of itself (at most a second old).

        ``waits`` has a sleeping deployment loaded, and waits for it.
        """
        self._start()
        if not waits:
            return await self._statuses.facts(deployment)
        return await self._wakening.retry(deployment, lambda: self._statuses.facts(deployment))

    async def replicas(self, deployment: str | None = None) -> tuple[ReplicaStatus, ...]:
        """Give the live replicas of a deployment, or all (at most a second old)."""
        self._start()
        return await self._statuses.of(deployment)

    async def beating_replicas(self) -> tuple[ReplicaStatus, ...]:
        """Give the replicas that have just been heard of, looked at now."""
        self._start()
        return await self._relay.replicas(silent_seconds=SILENT_SECONDS)

    async def num_waiting(self, deployment: str) -> int:
        """Count the jobs that wait for a slot."""
        self._start()
        return await self._relay.num_waiting(deployment)

    async def spare(self, deployment: str) -> SpareView:
        """Tell what jobs of the lowest class might use; looked at now."""
        self._start()
        return await self._relay.spare(deployment)

    async def ping(self) -> None:
        """Raise EngineError BROKER_UNAVAILABLE unless the server answers."""
        self._start()
        await self._relay.ping()

    async def check_link(self) -> None:
        """Raise EngineError BROKER_UNAVAILABLE unless the server answers and events are heard."""
        await self._link()
        await self._relay.ping()

    @property
    def trouble(self) -> str:
        """What is wrong with what runs beside requests; empty where nothing is."""
        self._start()
        ended = [task for task in self._tasks if task.done()]
        return "a task that reads events has ended" if ended else self._watcher.trouble

    async def submit(
        self,
        job: Job,
        *,
        max_queue: int,
        max_owner_queue: int | None = None,
        bill: bytes = b"",
        stake: Stake | None = None,
        meter: Meter | None = None,
    ) -> JobStream:
        """Queue a job whose ``gateway`` is this ``gateway_id``, and follow it.

        Where no replica is ready it waits for one, as long as that may come before the deadline.
        The ``bill`` goes into the ledger with what the job used; without one nothing does.
        The ``stake`` tells whose limits count the job, where they are newer than the job.
        The ``meter`` comes with a request's first job, and takes what all its jobs may use: the
        others are to be submitted, or left by ``leave``.
        Raises EngineError QUEUE_FULL, KEY_QUEUE_FULL, NO_READY_REPLICA, REQUEST_CRASHED_ENGINE or
        BROKER_UNAVAILABLE, or LimitReached. If the caller is cancelled meanwhile the job is
        cancelled too.
        """
        await self._link()
        return await self._wakening.retry(
            job.deployment,
            lambda: self._submitter.submit(job, max_queue, max_owner_queue, bill, stake, meter),
            deadline=job.deadline,
        )

    def leave(self, jobs: Sequence[Job]) -> None:
        """Let go of jobs that are not submitted, and of what a meter took for them."""
        for job in jobs:
            self._farewells.cancel(job, is_abandoned=True)

    async def admit(self, meter: Meter) -> tuple[Reading, ...]:
        """Count a request that has no jobs, and tell what is left; raises LimitReached."""
        self._start()
        return await self._relay.metering.admit(meter)

    async def attach(self, job_id: str, owner: str) -> JobStream | None:
        """Follow a durable job from its first event on; None where the owner has no such job.

        Others that follow it, here or at other gateways, go on. Where too many do here, the one
        that has for longest is told that the job goes on without it.
        """
        await self._link()
        job = await self._relay.attach(job_id, owner, self.gateway_id)
        if job is None:
            return None
        readers = [stream for stream in self._streams.of(job_id) if not stream.is_ended]
        if len(readers) >= MOST_READERS:
            readers[0].end(CROWDED_EVENT)
        stream = self._follow(job)
        stream.is_submitted = True
        stream.last_news = stream.last_poll = 0.0
        self._watcher.request_fill()
        return stream

    async def look(self, job_id: str) -> str:
        """Tell where a job is, without following it: waiting, running, done, or empty: unknown."""
        await self._link()
        [view] = await self._relay.poll([(job_id, LAST_SEQ)])
        return view.state

    async def find_running(self, job_ids: Sequence[str]) -> frozenset[str]:
        """Give those of some jobs that a replica works on; looked at now."""
        self._start()
        views = await self._relay.poll([(job, LAST_SEQ) for job in job_ids]) if job_ids else ()
        pairs = zip(job_ids, views, strict=True)
        return frozenset(job for job, view in pairs if view.state == "running")

    async def history(self, job_id: str) -> list[Event]:
        """Give all that a job has told so far, without following it."""
        await self._link()
        told: list[Event] = []
        while True:
            [view] = await self._relay.poll([(job_id, len(told) + 1)])
            told += (event for _, event in view.events)
            if len(view.events) < POLL_EVENTS:
                return told

    async def keep_run(self, run: str, owner: str, document: bytes, deadline: float) -> None:
        """Keep what tells an answer anew until the events of its jobs are gone."""
        await self._link()
        await self._relay.keep(run, owner, document, deadline)

    async def find_run(self, run: str, owner: str) -> bytes | None:
        """Give what was kept of an answer; None where the owner has no such run."""
        await self._link()
        return await self._relay.find_kept(run, owner)

    @property
    def answers(self) -> AnswerRelay:
        """Answers that are given once, by idempotency key."""
        self._start()
        return self._answers

    @property
    def conversations(self) -> ConversationRelay:
        """Runs by the names that clients gave them."""
        self._start()
        return self._conversations

    @property
    def wrong_keys(self) -> WrongKeyRelay:
        """How many wrong API keys came from where."""
        self._start()
        return self._wrong_keys

    @property
    def rights(self) -> Rights:
        """What ends when somebody may call no more."""
        self._start()
        return self._rights

    async def cancel_jobs(self, jobs: Sequence[str]) -> Cancellation:
        """Stop jobs wherever they are followed."""
        await self._link()
        outcomes = set(await self._relay.cancel(jobs, is_abandoned=False))
        if outcomes <= {"gone"}:
            return Cancellation.UNKNOWN
        return Cancellation.TOO_LATE if outcomes <= {"gone", "done"} else Cancellation.STOPPED

    @property
    def has_waiting(self) -> bool:
        """Whether somebody waits for a replica."""
        return self._wakening.has_waiting

    def stop_waiting(self) -> None:
        """Tell whoever waits for a replica, now or later, that this gateway stops."""
        self._wakening.stop()

    async def close(self) -> None:
        """Stop listening; running streams get no more events."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.forget()

    def forget(self) -> None:
        """Let go of what outlives a loop that was closed without ``close``."""
        self._tasks.clear()
        self._tickets.close()

    def _follow(self, job: Job) -> JobStream:
        stream = JobStream(
            job,
            request_fill=self._watcher.request_fill,
            request_cancel=self._cancel,
            request_close=self._close,
        )
        self._streams.add(stream)
        self._watcher.start_watching()
        self._rights.start_watching()
        return stream

    def _start(self) -> None:
        """Start listening on first use; cancelling the tasks closes the connections."""
        if not self._tasks or self._tasks[0].done():
            loop = asyncio.get_running_loop()
            self._tasks = [
                loop.create_task(self._listen()),
                loop.create_task(self._watcher.run()),
                loop.create_task(self._rights.run()),
            ]

    async def _listen(self) -> None:
        try:
            await self._subscriber.run()
        finally:
            await self._watcher.close()
            await self._farewells.close()
            await self._redis.aclose()

    async def _link(self) -> None:
        """Wait until events can be heard. Later breaks of the link are mended behind our back."""
        self._start()
        if self._subscriber.is_linked.is_set():
            return
        try:
            async with asyncio.timeout(LINK_SECONDS):
                await self._subscriber.is_linked.wait()
        except TimeoutError as error:
            raise broker_unavailable() from error

    def _on_message(self, message: list[EventFrame] | TextReply) -> None:
        if isinstance(message, TextReply):
            self._questions.accept(message)
            return
        streams = self._streams
        is_behind = False
        for job, seq, event in message:
            for stream in streams.of(job):
                stream.accept(seq, event)
                is_behind = is_behind or stream.next_seq <= seq
        if is_behind:
            self._watcher.request_fill()

    def _cancel(self, stream: JobStream) -> None:
        self._farewells.cancel(stream.job, is_abandoned=False)

    def _close(self, stream: JobStream) -> None:
        self._streams.discard(stream)
        if stream.is_durable and stream.is_submitted:
            return  # it goes on, and stays for who comes back
        if stream.is_finished:
            self._farewells.release(stream.job.id)
        else:
            self._farewells.cancel(stream.job, is_abandoned=True)


async def _read_spent(counter: Counter, since: int) -> int:
    """Ask the ledger, which is not ours to know."""
    read: ReadSpent = import_string(settings.BUDGET_LEDGER)
    return await read(counter, since)


_dispatchers: dict[asyncio.AbstractEventLoop, Dispatcher] = {}


def get_dispatcher() -> Dispatcher:
    """Give the dispatcher of the running event loop."""
    loop = asyncio.get_running_loop()
    dispatcher = _dispatchers.get(loop)
    if dispatcher is None:
        for closed in [known for known in _dispatchers if known.is_closed()]:
            _dispatchers.pop(closed).forget()
        dispatcher = _dispatchers[loop] = Dispatcher(settings.REDIS_URL)
    return dispatcher


def stop_waiting() -> None:
    """Have nobody of this process wait for a replica any more."""
    for dispatcher in _dispatchers.values():
        dispatcher.stop_waiting()
