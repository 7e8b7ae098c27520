"""A real server per module, emptied before each test."""

from collections.abc import Iterator

import pytest

from inference.relay.connect import AsyncRedis, SyncRedis, connect, connect_async
from inference.relay.gateway import GatewayRelay
from tests.inference.relay.broker import Broker


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
