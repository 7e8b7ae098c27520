"""A server, a client, and node agents that end with their test."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from inference.protocol.replicas import ReplicaSpec
from inference.relay.desired import DesiredState
from tests.inference.relay.broker import Broker
from tests.inference.worker.conftest import client
from tests.inference.worker.replicas import Client, environment

__all__ = ["client"]


class Node:
    """A node agent as a process, and what the controller tells it.

    ``url`` is the way to the broker, where that is not the straight one; ``settings`` are of its
    environment.
    """

    def __init__(
        self, broker: Broker, client: Client, home: Path, *, url: str = "", **settings: str
    ) -> None:
        self.desired = DesiredState(client.redis)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "inference.node"],
            env=environment(
                url or broker.url,
                LLAMERO_HOME=str(home),
                LLAMERO_SECRET_KEY="s3cret",
                **settings,
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def want(self, *specs: ReplicaSpec) -> None:
        """Tell the node what to run."""
        self.desired.publish("here", specs)

    def replicas(self) -> list[psutil.Process]:
        """Give its replica processes."""
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def node(broker: Broker, client: Client, tmp_path: Path) -> Iterator[Node]:
    node = Node(broker, client, tmp_path, LLAMERO_DRAIN_SECONDS="2")
    yield node
    node.process.kill()
    node.process.communicate()
