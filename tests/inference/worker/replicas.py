"""A replica as a process over a fake engine, and a gateway's view of its jobs, for tests."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from celery import Celery

from inference.node.orphan import parent_environment
from inference.protocol.events import TERMINAL, Event, decode_event
from inference.protocol.jobs import GenerationJob, Job
from inference.protocol.replicas import (
    ModelKind,
    ReplicaSpec,
    ReplicaState,
    ReplicaStatus,
    RuntimeProfile,
)
from inference.relay.connect import AsyncRedis, SyncRedis, connect_async
from inference.relay.gateway import GatewayRelay
from inference.relay.keys import events_key
from inference.relay.registry import ReplicaRegistry
from inference.worker.celery_app import build_app, send_ticket
from tests.processes import PATIENCE_SECONDS, ROOT, wait_until

FAKE_FILE = "fake:?step_ms=5"
_numbers = itertools.count(1)


def make_spec(replica: str = "chat-1", **changes: object) -> ReplicaSpec:
    """Describe a replica of deployment ``chat`` with 8 slots over the fake engine."""
    fields: dict[str, object] = {
        "replica": replica,
        "deployment": "chat",
        "model": "fake",
        "kind": ModelKind.CHAT,
        "files": (FAKE_FILE,),
        "sha256": ("",),
        "profile": RuntimeProfile(num_slots=8, context_length=4096),
    }
    return ReplicaSpec(**{**fields, **changes})  # type: ignore[arg-type]


def make_job(max_tokens: int = 5, **changes: object) -> GenerationJob:
    """Make a job for deployment ``chat``."""
    number = next(_numbers)
    fields: dict[str, object] = {
        "id": f"job{number:06d}",
        "deployment": "chat",
        "owner": "alice",
        "salt": "alice",
        "gateway": "gw",
        "prompt_tokens": (70, 71, 72, 10 + number % 200),
        "max_tokens": max_tokens,
        "deadline": time.time() + 600,
    }
    return GenerationJob(**{**fields, **changes})  # type: ignore[arg-type]


def environment(url: str, **extra: str) -> dict[str, str]:
    """Build the environment of a replica or a node agent."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("LLAMERO_")}
    return {
        **base,
        **parent_environment(),
        "PYTHONPATH": str(ROOT),
        "LLAMERO_REDIS_URL": url,
        "LLAMERO_NODE": "here",
        **extra,
    }


def start_worker(url: str, spec: ReplicaSpec, **extra: str) -> subprocess.Popen[str]:
    """Start a replica process; its output is one pipe."""
    extra["LLAMERO_REPLICA_SPEC"] = msgspec.json.encode(spec).decode()
    return subprocess.Popen(
        [sys.executable, "-m", "inference.worker"],
        env=environment(url, **extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class Client:
    """Submits jobs as a gateway does and reads their events. One event loop."""

    def __init__(self, url: str, redis: SyncRedis) -> None:
        self.redis = redis
        self.async_redis: AsyncRedis = connect_async(url)
        self.gateway = GatewayRelay(self.async_redis)
        self.registry = ReplicaRegistry(redis)
        self._tickets: Celery = build_app(url, "", lambda: None)

    async def submit(self, *jobs: Job) -> None:
        """Put jobs into the waiting set, with a ticket where one is needed."""
        for job in jobs:
            admission = await self.gateway.submit(job, max_queue=1000)
            if admission.ticket_for:
                self.send_tickets({admission.ticket_for: 1})

    def send_tickets(self, tickets: Mapping[str, int]) -> None:
        """Wake that many slots of each replica."""
        for replica, number in tickets.items():
            for _ in range(number):
                send_ticket(self._tickets, replica)

    async def cancel(self, job: GenerationJob) -> None:
        """Stop a job."""
        await self.gateway.cancel([job.id], is_abandoned=False)

    def events(self, job: Job) -> list[Event]:
        """Give the events of a job so far; checks that their numbers have no hole."""
        entries: Any = self.redis.xrange(events_key(job.id))
        ids = [entry[0].decode() for entry in entries]
        assert ids == [f"0-{number}" for number in range(1, len(ids) + 1)]
        return [decode_event(entry[1][b"e"]) for entry in entries]

    def wait_for_end(self, job: Job, seconds: float = PATIENCE_SECONDS) -> list[Event]:
        """Give all events of a job once it has ended."""

        def has_ended() -> bool:
            return any(isinstance(event, TERMINAL) for event in self.events(job))

        wait_until(has_ended, seconds=seconds, what=f"end of {job.id}")
        return self.events(job)

    def wait_for_start(self, job: GenerationJob) -> None:
        """Return when a job has its first tokens."""
        wait_until(lambda: len(self.events(job)) > 2, what=f"tokens of {job.id}")

    def wait_for_status(
        self,
        replica: str = "chat-1",
        state: ReplicaState = ReplicaState.READY,
        matches: Callable[[ReplicaStatus], bool] = lambda _: True,
    ) -> ReplicaStatus:
        """Give a replica's status once it is in a state and matches."""

        def look() -> ReplicaStatus | None:
            status = self.registry.get(replica)
            return status if status and status.state is state and matches(status) else None

        wait_until(look, what=f"{replica} {state}")
        status = look()
        assert status is not None
        return status
