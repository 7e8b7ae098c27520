"""Which job a free slot takes next: the waiting set of one deployment."""

import msgspec

from inference.protocol.jobs import Job, decode_job
from inference.relay.connect import SyncRedis, text_of
from inference.relay.endings import LATE
from inference.relay.keys import BACKLOG, waiting_key
from inference.relay.scripts import script


class WaitingSet:
    """Waiting jobs in the order of priority, then of a fair share between owners."""

    def __init__(self, redis: SyncRedis, deployment: str) -> None:
        self._redis = redis
        self._deployment = deployment
        self._take = script("take")

    def take(self, replica: str, *, finished: str | None = None) -> Job | None:
        """Take the best waiting job for a slot of the replica, or None when nothing waits.

        ``finished`` is the job the same slot had before: it tells the gateways that the slot is
        about to sleep, so that they send a ticket for the next job. Overdue jobs are ended here.
        The job's ``attempt`` is the one that its events must carry.
        """
        found = self._take.run(self._redis, (self._deployment, replica, finished or "", LATE))
        if found is None:
            return None
        payload, attempt = found
        job = decode_job(payload)
        if job.attempt != int(attempt):
            return msgspec.structs.replace(job, attempt=int(attempt))
        return job

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
