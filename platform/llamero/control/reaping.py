"""Bring to an end what no replica will end, and wake slots for jobs that wait without a ticket."""

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
    if found.failed_jobs:
        logger.warning("ended %d jobs that nobody would have ended", len(found.failed_jobs))
    for deployment, num_missing in found.tickets.items():
        for _ in range(num_missing):
            send_ticket(deployment)
