"""How jobs end whose replica is lost, whose time is up, or which nobody can serve."""

from dataclasses import dataclass

from inference.protocol.names import ticket_queue
from inference.relay.connect import SyncRedis
from inference.relay.endings import LATE, LOST, UNSERVED
from inference.relay.scripts import script

UNSERVED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found: lost replicas, jobs it ended, tickets to send per deployment."""

    lost_replicas: tuple[str, ...]
    failed_jobs: tuple[str, ...]
    tickets: dict[str, int]


def fail_jobs_of(
    redis: SyncRedis, replica: str, *, only_if_lease_gone: bool = False
) -> tuple[str, ...]:
    """End every job of a replica as lost and forget its lease; gives the jobs' ids.

    Call it as soon as the process is known to be dead. Raised attempts fence a late writer.
    """
    flags = (int(only_if_lease_gone), int(not only_if_lease_gone))
    return tuple(job.decode() for job in script("reap").run(redis, (replica, LOST, *flags)))


def sweep(redis: SyncRedis, *, unserved_seconds: float = UNSERVED_SECONDS) -> Sweep:
    """End what no live replica will end. Meant to run each second; several sweepers do no harm.

    Leases are judged only after 5 seconds of unbroken sweeps, so that a paused server or a late
    start of the sweeper costs no job of a live replica.
    """
    lost, failed, wanted = script("sweep").run(redis, (LOST, LATE, UNSERVED, unserved_seconds))
    tickets: dict[str, int] = {}
    for index in range(0, len(wanted), 2):
        deployment = wanted[index].decode()
        num_missing = int(wanted[index + 1]) - int(redis.llen(ticket_queue(deployment)))
        if num_missing > 0:
            tickets[deployment] = num_missing
    return Sweep(
        tuple(replica.decode() for replica in lost),
        tuple(job.decode() for job in failed),
        tickets,
    )
