"""Connections that died without a word cost one call, however many of them lay idle."""

import asyncio

import pytest

from inference.relay.connect import UNREACHABLE, connect, connect_async
from tests.chaos.link import Link
from tests.inference.relay.broker import Broker

SECONDS = 2.0
NUM_CONNECTIONS = 4


@pytest.fixture
def link(broker, tmp_path):
    link = Link(broker.socket, tmp_path / "link.sock")
    yield link
    link.close()


def test_threads_lose_one_call(link):
    with connect(link.url) as redis:
        redis.connection_pool.connection_kwargs["socket_timeout"] = SECONDS
        pool = redis.connection_pool
        for connection in [pool.get_connection() for _ in range(NUM_CONNECTIONS)]:
            connection.send_command("PING")
            assert connection.read_response()
            pool.release(connection)
        assert link.drop(refuses=False) == NUM_CONNECTIONS
        with pytest.raises(UNREACHABLE):
            redis.ping()
        for _ in range(NUM_CONNECTIONS):
            redis.ping()


async def test_an_event_loop_loses_one_call(link):
    async with connect_async(link.url) as redis:
        redis.connection_pool.connection_kwargs["socket_timeout"] = SECONDS
        pool = redis.connection_pool
        for connection in [await pool.get_connection() for _ in range(NUM_CONNECTIONS)]:
            await connection.send_command("PING")
            assert await connection.read_response()
            await pool.release(connection)
        assert link.drop(refuses=False) == NUM_CONNECTIONS
        with pytest.raises(UNREACHABLE):
            await redis.ping()
        await asyncio.gather(*(redis.ping() for _ in range(NUM_CONNECTIONS)))


def test_a_server_that_was_restarted_costs_none(broker: Broker, link):
    with connect(broker.url) as redis:
        redis.ping()
        broker.stop()
        broker.start()
        assert redis.ping()
