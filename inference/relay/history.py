"""What is kept of jobs, for those who follow none: where each is, and all that it told."""

from collections.abc import Sequence
from typing import Any

import msgspec

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Event, Failed, decode_event
from inference.relay.connect import SyncRedis, text_of
from inference.relay.keys import events_key, job_key, kept_key

# Where a job is that goes on.
LIVE_STATES = ("waiting", "running")
UNREADABLE_EVENT = Failed(ErrorCode.INTERNAL_ERROR, "An event of this request could not be read.")


def read_event(raw: bytes) -> Event:
    """Read an event; one of another version ends the job here instead of a wait for ever."""
    try:
        return decode_event(raw)
    except msgspec.DecodeError:
        return UNREADABLE_EVENT


def read_states(redis: SyncRedis, jobs: Sequence[str]) -> list[str]:
    """Tell of each job: waiting, running, done, or empty when it is unknown."""
    pipe = redis.pipeline(transaction=False)
    for job in jobs:
        pipe.hget(job_key(job), "state")
    return ["" if state is None else text_of(state) for state in pipe.execute()]


def read_history(redis: SyncRedis, job: str) -> list[Event]:
    """Give all that a job has told so far."""
    entries: Any = redis.xrange(events_key(job))
    return [read_event(fields[b"e"]) for _, fields in entries]


def read_kept(redis: SyncRedis, runs: Sequence[tuple[str, str]]) -> list[bytes | None]:
    """Give what is kept of resumable answers, each by its owner and its id."""
    documents: Any = redis.mget([kept_key(owner, run) for owner, run in runs])
    return list(documents)
