"""A broker, node agents over the fake engine, gateways and clients: all that a trial may kill."""

import contextlib
import functools
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
from kombu.exceptions import OperationalError

from inference.protocol.events import TERMINAL, Event, Started, decode_event
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ReplicaSpec, ReplicaState, ReplicaStatus, RuntimeProfile
from inference.relay.connect import UNREACHABLE, RedisError, connect
from inference.relay.keys import events_key
from inference.relay.reaper import sweep
from inference.relay.scripts import script
from tests.chaos.link import Link
from tests.gateways import Gateway, GatewayHome
from tests.inference.node.conftest import Node
from tests.inference.relay.broker import Broker
from tests.inference.worker.replicas import Client, make_job, make_spec
from tests.inference.worker.wholeness import check_whole
from tests.processes import wait_until

NUM_SLOTS = 16
SWEEP_SECONDS = 0.5
LOOK_SECONDS = 0.1
FAKE_FILE = "fake:?step_ms=5&abort_on=5"
NAMES = ("chat-1", "chat-2")


class Lab:
    """Replicas on one node, swept as by the control worker; ``gw`` counts as alive.

    With ``is_linked`` the parts reach the broker over a link that can be cut, and only the trial
    itself does not.
    """

    def __init__(self, folder: Path, *, is_linked: bool = False) -> None:
        self.folder = folder
        self.broker = Broker(folder)
        self.broker.start()
        self.link = Link(self.broker.socket, folder / "link.sock") if is_linked else None
        self.url = self.link.url if self.link else self.broker.url
        self.redis = connect(self.broker.url)
        self.client = Client(self.broker.url, self.redis)
        self.nodes = [self.start_node()]
        self.home: GatewayHome | None = None
        self._stop = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, daemon=True)
        self._sweeper.start()

    async def close(self) -> None:
        """End everything."""
        self._stop.set()
        self._sweeper.join()
        await self.client.async_redis.aclose()
        if self.home:
            self.home.stop()
        for node in self.nodes:
            with contextlib.suppress(psutil.NoSuchProcess):
                replicas = psutil.Process(node.process.pid).children()
                node.process.kill()
                psutil.wait_procs(replicas, timeout=5)
            node.process.wait()
        if self.link:
            self.link.close()
        self.broker.stop()

    def want(self, *specs: ReplicaSpec) -> None:
        """Tell the node what to run."""
        self.nodes[-1].want(*specs)

    def start_node(self) -> Node:
        """Start a node agent; its output is dropped."""
        node = Node(self.broker, self.client, self.folder, url=self.url)
        assert node.process.stdout is not None
        threading.Thread(target=node.process.stdout.read, daemon=True).start()
        return node

    def start_gateways(self, number: int, **profile: int) -> list[Gateway]:
        """Start gateways in front of the replicas."""
        folder = self.folder / "gateways"
        prepared = _prepare_home(tuple(sorted(profile.items())))
        shutil.copytree(prepared, folder)
        self.home = GatewayHome(folder, self.url, is_prepared=True)
        return self.home.start(number)

    def status(self, name: str) -> ReplicaStatus:
        """Give a replica's heartbeat, which must be there."""
        status = self.client.registry.get(name)
        assert status is not None, f"{name} has no heartbeat"
        return status

    def wait_until_ready(self, num_replicas: int = 2) -> None:
        """Return when so many replicas are ready."""

        def is_ready() -> bool:
            states = [status.state for status in self.client.registry.list()]
            return states.count(ReplicaState.READY) >= num_replicas

        wait_until(is_ready, seconds=60, what=f"{num_replicas} ready replicas")

    def kill_replica(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to a replica's process, once it has one; gives its id."""

        def is_running() -> bool:
            status = self.client.registry.get(name)
            # One that is about to start is told by its agent, without a process.
            return status is not None and status.pid > 0 and psutil.pid_exists(status.pid)

        wait_until(is_running, seconds=60, what=f"a process of {name}")
        pid = self.status(name).pid
        assert pid > 0, "zero would be ourselves"
        os.kill(pid, number)
        return pid

    async def run_jobs(self, number: int, num_tokens: int, **fields: Any) -> list[GenerationJob]:
        """Submit jobs and wait until each has tokens, as far as there are slots."""
        jobs = [make_job(max_tokens=num_tokens, **fields) for _ in range(number)]
        await self.client.submit(*jobs)
        for job in jobs[: len(NAMES) * NUM_SLOTS]:
            self.client.wait_for_start(job)
        return jobs

    def wait_for_ends(
        self, jobs: Sequence[GenerationJob], seconds: float = 60
    ) -> dict[str, list[Event]]:
        """Give the events of the jobs that end in time."""
        ends = time.monotonic() + seconds
        found: dict[str, list[Event]] = {}
        while len(found) < len(jobs) and time.monotonic() < ends:
            waiting = [job for job in jobs if job.id not in found]
            pipe = self.redis.pipeline(transaction=False)
            for job in waiting:
                pipe.xrevrange(events_key(job.id), count=1)
            with contextlib.suppress(*UNREACHABLE):
                for job, last in zip(waiting, pipe.execute(), strict=True):
                    if last and isinstance(decode_event(last[0][1][b"e"]), TERMINAL):
                        found[job.id] = self.client.events(job)
            time.sleep(LOOK_SECONDS)
        return found

    def wait(self, condition: Callable[[], object], seconds: float) -> bool:
        """Tell whether something comes true in time."""
        with contextlib.suppress(AssertionError):
            wait_until(condition, seconds=seconds, what="")
            return True
        return False

    def has_ended(self, job: GenerationJob) -> bool:
        """Whether a job has its last event, or is forgotten."""
        return not self.redis.exists(f"lm:job:{job.id}") or any(
            isinstance(event, TERMINAL) for event in self.client.events(job)
        )

    def _sweep(self) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            with contextlib.suppress(*UNREACHABLE, RedisError, OperationalError):
                script("greet").run(self.redis, ("gw",))
                self.client.send_tickets(sweep(self.redis).tickets)


def make_specs(*, file: str = FAKE_FILE, num_slots: int = NUM_SLOTS) -> list[ReplicaSpec]:
    """Describe two replicas over the fake engine."""
    profile = RuntimeProfile(num_slots=num_slots, context_length=4096)
    return [make_spec(name, profile=profile, files=(file,)) for name in NAMES]


def is_whole(job: GenerationJob, events: list[Event] | None) -> bool:
    """Tell whether a job has ended well with each token and letter once."""
    if events is None:
        return False
    try:
        check_whole(job, events)
    except AssertionError:
        return False
    return True


def num_starts(events: list[Event] | None) -> int:
    """Count how often slots took a job."""
    return sum(isinstance(event, Started) for event in events or ())


@contextlib.asynccontextmanager
async def open_lab(*specs: ReplicaSpec, is_linked: bool = False) -> AsyncIterator[Lab]:
    """Build a lab with ready replicas, two ordinary ones unless told, and tear it down."""
    wanted = specs or make_specs()
    with tempfile.TemporaryDirectory(prefix="chaos") as folder:
        lab = Lab(Path(folder), is_linked=is_linked)
        try:
            lab.want(*wanted)
            lab.wait_until_ready(len(wanted))
            yield lab
        finally:
            await lab.close()


@functools.cache
def _prepare_home(profile: tuple[tuple[str, int], ...]) -> Path:
    """Make a gateways' home once; it is copied, since migrations take seconds."""
    holder = tempfile.TemporaryDirectory(prefix="chaos-home")
    _holders.append(holder)
    return GatewayHome(Path(holder.name), "unix:///nowhere", **dict(profile)).folder


# Their folders go when the program ends.
_holders: list[tempfile.TemporaryDirectory[str]] = []
