"""Take versions out of service whose files a replica found to be others than were examined."""

import logging

from inference.relay.connect import SyncRedis
from inference.relay.registry import ReplicaRegistry
from models_registry.services.versions import quarantine_file

logger = logging.getLogger(__name__)


def quarantine(redis: SyncRedis) -> None:
    """Quarantine what the replicas' heartbeats name."""
    for status in ReplicaRegistry(redis).list():
        if status.bad_sha256 and quarantine_file(sha256=status.bad_sha256, reason=status.reason):
            logger.error("model %s is quarantined: %s", status.deployment, status.reason)
