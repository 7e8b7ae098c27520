"""How jobs go on, or end, whose replica is lost, whose time is up, or which nobody can serve."""

from dataclasses import dataclass
from enum import IntEnum

from inference.protocol.names import ticket_queue
from inference.relay.connect import SyncRedis, text_of
from inference.relay.scripts import script

UNSERVED_SECONDS = 30.0


class ReplicaEnd(IntEnum):
    """How a replica ended: what counts against the jobs it ran, and how much.

    A job whose replicas crash twice without a new token of it is refused for good; one whose
    replicas were killed, or vanished, thrice.
    """

    ORDERLY = 0
    KILLED = 1
    CRASHED = 2


@dataclass(frozen=True, slots=True)
class Reaped:
    """What became of the jobs of a replica that ended: most wait again, some have ended."""

    queued: tuple[str, ...]
    ended: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found: lost replicas, jobs that wait again or ended, tickets by replica."""

    lost_replicas: tuple[str, ...]
    queued_jobs: tuple[str, ...]
    ended_jobs: tuple[str, ...]
    tickets: dict[str, int]


def reap(redis: SyncRedis, replica: str, end: ReplicaEnd, *, forgets: bool = True) -> Reaped:
    """Queue again every job of a replica that ended, and (``forgets``) drop its lease.

    Call it as soon as the process is known to be dead. Raised attempts fence a late writer.
    """
    queued, ended = script("reap").run(redis, (replica, int(end), 0, int(forgets)))
    return Reaped(_names(queued), _names(ended))


def sweep(redis: SyncRedis, *, unserved_seconds: float = UNSERVED_SECONDS) -> Sweep:
    """Look after what no live replica looks after. Meant to run each second; several do no harm.

    Leases are judged only after 5 seconds of unbroken sweeps, so that a paused server or a late
    start of the sweeper costs no job of a live replica or gateway. Jobs without a ready replica
    wait while one is coming, else ``unserved_seconds``; not at all where the model is switched off.
    """
    lost, queued, ended, wanted = script("sweep").run(redis, (unserved_seconds,))
    tickets: dict[str, int] = {}
    for index in range(0, len(wanted), 2):
        replica = wanted[index].decode()
        num_missing = int(wanted[index + 1]) - int(redis.llen(ticket_queue(replica)))
        if num_missing > 0:
            tickets[replica] = num_missing
    return Sweep(_names(lost), _names(queued), _names(ended), tickets)


def _names(raw: list[bytes | str]) -> tuple[str, ...]:
    return tuple(map(text_of, raw))
