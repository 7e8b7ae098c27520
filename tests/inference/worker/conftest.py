"""A server per module, a client, and replicas that end with their test."""

import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from inference.protocol.replicas import ReplicaSpec
from inference.relay.connect import connect
from tests.inference.relay.broker import Broker
from tests.inference.worker.replicas import Client, make_spec, start_worker

StartReplica = Callable[..., subprocess.Popen[str]]


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    with connect(broker.url) as redis:
        redis.flushall()
        client = Client(broker.url, redis)
        yield client
        await client.async_redis.aclose()


@pytest.fixture
def start_replica(broker: Broker, client: Client, tmp_path: Path) -> Iterator[StartReplica]:
    started: list[subprocess.Popen[str]] = []

    def start(spec: ReplicaSpec | None = None, **extra: str) -> subprocess.Popen[str]:
        extra.setdefault("LLAMERO_HOME", str(tmp_path))
        process = start_worker(broker.url, spec or make_spec(), **extra)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
