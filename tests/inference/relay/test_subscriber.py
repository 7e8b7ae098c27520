"""The raw subscription works over TCP with a password, and comes back when the link is cut."""

import asyncio

import pytest

from inference.relay.connect import connect
from inference.relay.keys import gateway_channel
from inference.relay.subscriber import Subscriber
from inference.relay.text_lane import TextLane
from tests.inference.relay.broker import Broker
from tests.inference.relay.fakes import make_token
from tests.processes import PATIENCE_SECONDS, find_free_port


@pytest.fixture
def tcp_broker(tmp_path_factory):
    port = find_free_port()
    server = Broker(
        tmp_path_factory.mktemp("tcp"), port=str(port), bind="127.0.0.1", requirepass="s3cret"
    )
    server.start()
    server.url = f"redis://:s3cret@127.0.0.1:{port}/0"
    yield server
    server.stop()


async def test_messages_arrive_over_tcp_and_after_a_cut(tcp_broker):
    heard: asyncio.Queue = asyncio.Queue()
    linked = asyncio.Semaphore(0)
    subscriber = Subscriber(tcp_broker.url, "gw", heard.put_nowait, linked.release, print)
    task = asyncio.create_task(subscriber.run())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await linked.acquire()
        with connect(tcp_broker.url) as client:
            client.publish(gateway_channel("gw"), b'[["a",1,["t","t1 ",[1],[]]]]')
            assert await heard.get() == [("a", 1, make_token(1))]
            client.client_kill_filter(_type="pubsub")
            await linked.acquire()
            client.publish(gateway_channel("gw"), b'[["a",2,["t","t2 ",[2],[]]]]')
            assert await heard.get() == [("a", 2, make_token(2))]
            assert TextLane(client, "chat", "chat-1").take(0.01) is None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_wrong_password_is_no_link(tcp_broker, caplog):
    url = tcp_broker.url.replace("s3cret", "wrong")
    subscriber = Subscriber(url, "gw", print, print, print)
    task = asyncio.create_task(subscriber.run())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "refused" not in caplog.text:
            await asyncio.sleep(0.02)
    assert not subscriber.is_linked.is_set()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
