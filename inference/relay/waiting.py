"""Which job a free slot takes next: the waiting set of one deployment."""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec

from inference.protocol.events import Tokens, decode_event
from inference.protocol.jobs import GenerationJob, Job, decode_job
from inference.relay.connect import SyncRedis, text_of
from inference.relay.keys import BACKLOG, events_key, waiting_key
from inference.relay.scripts import script


@dataclass(frozen=True, slots=True)
class TakenJob:
    """A job that a slot has, and how many events earlier attempts have told of it.

    The job's ``attempt`` is the one that its events must carry. ``waited_seconds`` is the time
    since it came, those attempts included.
    """

    job: Job
    num_events: int = 0
    waited_seconds: float = 0.0


class NotYet:
    """Jobs wait, but none that this replica may try now: ask again in a moment."""


NOT_YET = NotYet()


class WaitingSet:
    """Waiting jobs: by priority, then a fair share between owners, then arrival.

    See ``lua/order.lua`` for the order, and ``lua/fate.lua`` for jobs that come back.
    """

    def __init__(self, redis: SyncRedis, deployment: str) -> None:
        self._redis = redis
        self._deployment = deployment
        self._take = script("take")

    def take(self, replica: str, *, finished: str | None = None) -> TakenJob | NotYet | None:
        """Take the job whose turn it is for a slot of the replica, or None when nothing waits.

        ``finished`` is the job the same slot had before: it tells the gateways that the slot is
        about to sleep, so that they send a ticket for the next job. Overdue jobs are ended here.
        """
        found = self._take.run(self._redis, (self._deployment, replica, finished or ""))
        if found is None:
            return None
        if found == b"later":
            return NOT_YET
        payload, attempt, num_events, waited_ms, grant = found
        job = decode_job(payload)
        if grant and isinstance(job, GenerationJob):
            job = msgspec.structs.replace(job, max_tokens=int(grant))
        if job.attempt != int(attempt):
            job = msgspec.structs.replace(job, attempt=int(attempt))
        if num_events and isinstance(job, GenerationJob):
            told = self._read_tokens(job.id)
            job = msgspec.structs.replace(job, emitted_tokens=told)
        return TakenJob(job, num_events, waited_ms / 1000)

    def _read_tokens(self, job: str) -> tuple[int, ...]:
        """Give the tokens told by earlier attempts, none of which can write any more."""
        entries: Any = self._redis.xrange(events_key(job))
        events = (decode_event(fields[b"e"]) for _, fields in entries)
        return tuple(chain.from_iterable(e.token_ids for e in events if isinstance(e, Tokens)))

    def __len__(self) -> int:
        """Count the waiting jobs."""
        return int(self._redis.zcard(waiting_key(self._deployment)))


def waiting_counts(redis: SyncRedis) -> dict[str, int]:
    """Count the waiting jobs of each deployment that has any."""
    deployments = sorted(text_of(name) for name in redis.smembers(BACKLOG))
    pipe = redis.pipeline(transaction=False)
    for deployment in deployments:
        pipe.zcard(waiting_key(deployment))
    return dict(zip(deployments, pipe.execute(), strict=True))
