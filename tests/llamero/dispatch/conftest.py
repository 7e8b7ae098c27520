"""A real server, a replica driven by hand, and a dispatcher between them."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from pytest_django import Settings

from inference.protocol.events import Event
from inference.relay.connect import SyncRedis, connect
from inference.relay.mailbox import CancelInbox
from inference.relay.registry import ReplicaRegistry
from inference.relay.text_lane import TextLane
from inference.relay.waiting import TakenJob, WaitingSet
from inference.relay.writer import EventWriter
from llamero.dispatch import wakening
from llamero.dispatch.dispatcher import Dispatcher
from tests.inference.relay.broker import Broker
from tests.inference.relay.fakes import make_status
from tests.processes import PATIENCE_SECONDS


class Replica:
    """A replica without an engine: every move is made by the test."""

    def __init__(self, redis: SyncRedis, name: str = "chat-1") -> None:
        self.name = name
        self.redis = redis
        self.registry = ReplicaRegistry(redis)
        self.waiting = WaitingSet(redis, "chat")
        self.writer = EventWriter(redis)
        self.lane = TextLane(redis, "chat", name)
        self.inbox = CancelInbox(redis, name)

    def beat(self) -> None:
        self.registry.beat(make_status(self.name))

    def take(self) -> str:
        taken = self.waiting.take(self.name)
        assert isinstance(taken, TakenJob)
        return taken.job.id

    def write(self, job: str, seq: int, *events: Event) -> None:
        self.writer.write([(job, 1, seq + index, event) for index, event in enumerate(events)])


@pytest.fixture
def replica(broker: Broker) -> Iterator[Replica]:
    with connect(broker.url) as redis:
        redis.flushall()
        replica = Replica(redis)
        replica.beat()
        yield replica
        replica.inbox.close()


@pytest.fixture(autouse=True)
def without_database(settings: Settings) -> None:
    """Owners are made up."""
    settings.OWNER_REVIEW = "tests.llamero.dispatch.reviewing.review"


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests without a controller need not wait for one."""
    monkeypatch.setattr(wakening, "UNCONTROLLED_SECONDS", 0.0)


@pytest.fixture
def tickets() -> list[str]:
    return []


@pytest.fixture
async def dispatcher(
    broker: Broker, replica: Replica, tickets: list[str]
) -> AsyncIterator[Dispatcher]:
    dispatcher = Dispatcher(broker.url, publish_ticket=tickets.append)
    yield dispatcher
    await asyncio.wait_for(dispatcher.close(), PATIENCE_SECONDS)
