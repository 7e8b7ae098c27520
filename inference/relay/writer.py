"""How a replica's events reach their streams: a step in one call, nothing lost or doubled."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from inference.protocol.events import TERMINAL, Event, encode_event
from inference.relay.connect import UNREACHABLE, RedisError, SyncRedis
from inference.relay.scripts import Argument, script

logger = logging.getLogger(__name__)
MAX_EVENTS_PER_CALL = 1000
EventWrite = tuple[str, int, int, Event]


@dataclass(slots=True)
class _Log:
    """The events of one job since it was taken; the first ``num_kept`` are known to be stored."""

    attempt: int
    first_seq: int
    events: list[bytes] = field(default_factory=list)
    num_kept: int = 0
    is_ended: bool = False
    num_used: int = 0


class EventWriter:
    """Writes (job, attempt, seq, event) rows. Used by one thread.

    Rows that cannot be sent are kept and sent first next time, so a server that restarts or pauses
    costs time, not events. A server that lost the last second of its data gets it again.
    """

    def __init__(self, redis: SyncRedis) -> None:
        self._redis = redis
        self._script = script("write")
        self._logs: dict[str, _Log] = {}
        self._unsent: dict[str, _Log] = {}
        self._is_reachable = True

    @property
    def has_unsent(self) -> bool:
        """Whether rows wait for a server that was out of reach: call ``flush`` again soon."""
        return bool(self._unsent)

    def write(self, rows: Sequence[EventWrite]) -> tuple[str, ...]:
        """Write the events of a step; seqs go up by 1 per job, from the first one not told before.

        Gives the jobs that were refused (ended, reaped, unknown): cancel them in the engine.
        Never raises for a server that is out of reach, or out of memory.
        """
        for job, attempt, seq, event in rows:
            log = self._logs.get(job)
            if log is None or log.attempt != attempt:
                log = self._logs[job] = _Log(attempt, seq)
            if seq != log.first_seq + len(log.events):
                raise ValueError(f"event {seq} of job {job} is out of order")
            log.events.append(encode_event(event))
            if isinstance(event, TERMINAL):
                log.is_ended = True
                log.num_used = event.num_prompt_tokens + event.num_completion_tokens
            self._unsent[job] = log
        return self.flush()

    def flush(self) -> tuple[str, ...]:
        """Send what is unsent; gives the jobs that were refused."""
        refused: list[str] = []
        while self._unsent:
            sent, arguments = self._next_call()
            try:
                trouble = self._script.run(self._redis, arguments)
            except (*UNREACHABLE, RedisError) as error:
                if self._is_reachable:
                    logger.warning("events are kept back, the server cannot take them: %s", error)
                self._is_reachable = False
                break
            self._is_reachable = True
            self._settle(sent)
            refused += self._resolve(trouble)
        return tuple(refused)

    def forget(self, job: str) -> None:
        """Drop what is kept of a job whose end will never be written."""
        self._logs.pop(job, None)
        self._unsent.pop(job, None)

    def _next_call(self) -> tuple[dict[str, int], list[Argument]]:
        sent: dict[str, int] = {}
        arguments: list[Argument] = []
        room = MAX_EVENTS_PER_CALL
        for job, log in self._unsent.items():
            stop = min(len(log.events), log.num_kept + room)
            for index in range(log.num_kept, stop):
                is_last = log.is_ended and index + 1 == len(log.events)
                arguments += (
                    job,
                    log.attempt,
                    log.first_seq + index,
                    log.num_used if is_last else "",
                    log.events[index],
                )
            room -= stop - log.num_kept
            sent[job] = stop
            if room <= 0:
                break
        return sent, arguments

    def _settle(self, sent: dict[str, int]) -> None:
        for job, num_kept in sent.items():
            log = self._unsent[job]
            log.num_kept = num_kept
            if num_kept == len(log.events):
                del self._unsent[job]
                if log.is_ended:
                    del self._logs[job]

    def _resolve(self, trouble: list[bytes | int]) -> list[str]:
        """Drop refused jobs; make the earlier events of jobs with a gap unsent again."""
        refused = []
        for index in range(0, len(trouble), 3):
            job = bytes(trouble[index]).decode()
            log = self._logs.get(job)
            missing_from = int(trouble[index + 2]) + 1
            if trouble[index + 1] == b"gap" and log and missing_from >= log.first_seq:
                log.num_kept = missing_from - log.first_seq
                self._unsent[job] = log
            else:
                self.forget(job)
                refused.append(job)
        return refused
