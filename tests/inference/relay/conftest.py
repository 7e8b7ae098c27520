"""A real server per module, emptied before each test."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.relay.connect import AsyncRedis, SyncRedis, connect, connect_async
from inference.relay.gateway import GatewayRelay
from tests.inference.relay.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with tempfile.TemporaryDirectory(prefix="relay") as folder:
        server = Broker(Path(folder))
        server.start()
        yield server
        server.stop()


@pytest.fixture
def client(broker: Broker) -> Iterator[SyncRedis]:
    with connect(broker.url) as redis:
        redis.flushall()
        yield redis


@pytest.fixture
async def gateway(broker: Broker, client: SyncRedis):
    redis: AsyncRedis = connect_async(broker.url)
    yield GatewayRelay(redis)
    await redis.aclose()
