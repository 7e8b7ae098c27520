"""What a replica is told by its environment."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

import msgspec

from inference.protocol.draining import read_drain_seconds
from inference.protocol.replicas import ReplicaSpec


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The spec to serve, where the server is, and how long to finish jobs on SIGTERM.

    ``num_failures`` counts the bad ends of this replica's earlier processes of late.
    """

    spec: ReplicaSpec
    redis_url: str
    node: str
    home: Path
    drain_seconds: float
    log_level: str
    num_failures: int = 0


def read_settings() -> WorkerSettings:
    """Read the environment; raises KeyError or ValueError for a missing or wrong variable."""
    return WorkerSettings(
        spec=msgspec.json.decode(os.environ["LLAMERO_REPLICA_SPEC"], type=ReplicaSpec),
        redis_url=os.environ["LLAMERO_REDIS_URL"],
        node=os.environ.get("LLAMERO_NODE") or socket.gethostname(),
        home=Path(os.environ.get("LLAMERO_HOME") or "var"),
        drain_seconds=read_drain_seconds(os.environ),
        log_level=os.environ.get("LLAMERO_LOG_LEVEL") or "INFO",
        num_failures=int(os.environ.get("LLAMERO_REPLICA_FAILURES") or 0),
    )
