"""Look after jobs that no replica looks after, and wake slots for those without a ticket."""

import logging

from inference.relay.connect import SyncRedis
from inference.relay.reaper import sweep
from llamero.dispatch.tickets import send_ticket

logger = logging.getLogger(__name__)


def reap(redis: SyncRedis) -> None:
    """Sweep once, and send the tickets that the sweep found missing."""
    found = sweep(redis)
    if found.lost_replicas:
        logger.warning("lost replicas: %s", ", ".join(found.lost_replicas))
    if found.queued_jobs:
        logger.warning("%d jobs of lost replicas wait again", len(found.queued_jobs))
    if found.ended_jobs:
        logger.warning("ended %d jobs that nobody would have ended", len(found.ended_jobs))
    for replica, num_missing in found.tickets.items():
        for _ in range(num_missing):
            send_ticket(replica)
