"""A broker, node agents over the fake engine, and clients, all of which a trial may kill."""

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from inference.protocol.events import TERMINAL
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ReplicaState, RuntimeProfile
from inference.relay.connect import UNREACHABLE, RedisError, connect
from inference.relay.reaper import sweep
from inference.relay.scripts import script
from tests.gateways import GatewayHome
from tests.inference.node.conftest import Node
from tests.inference.relay.broker import Broker
from tests.inference.worker.replicas import Client, make_job, make_spec
from tests.inference.worker.wholeness import check_whole
from tests.processes import wait_until

NUM_SLOTS = 16
SWEEP_SECONDS = 0.5


class Lab:
    """Two replicas on one node, swept as by the control worker; ``gw`` counts as alive."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.broker = Broker(folder)
        self.broker.start()
        self.redis = connect(self.broker.url)
        self.client = Client(self.broker.url, self.redis)
        self.nodes = [self.start_node()]
        self._stop = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, daemon=True)
        self._sweeper.start()
        profile = RuntimeProfile(num_slots=NUM_SLOTS, context_length=4096)
        files = ("fake:?step_ms=5&abort_on=5",)
        specs = (make_spec(name, profile=profile, files=files) for name in ("chat-1", "chat-2"))
        self.nodes[0].want(*specs)

    def close(self) -> None:
        """End everything."""
        self._stop.set()
        self._sweeper.join()
        for node in self.nodes:
            node.process.kill()
            node.process.communicate()
        self.broker.stop()

    def start_node(self) -> Node:
        """Start a node agent; its output is dropped."""
        node = Node(self.broker, self.client, self._folder)
        assert node.process.stdout is not None
        threading.Thread(target=lambda: node.process.stdout.read(), daemon=True).start()
        return node

    def open_gateways(self) -> GatewayHome:
        """Prepare a place for gateways in front of the replicas."""
        folder = self._folder / "gateways"
        folder.mkdir()
        return GatewayHome(folder, self.broker.url)

    def wait_until_ready(self, num_replicas: int = 2) -> None:
        """Return when so many replicas are ready."""

        def is_ready() -> bool:
            states = [status.state for status in self.client.registry.list()]
            return states.count(ReplicaState.READY) >= num_replicas

        wait_until(is_ready, seconds=40, what=f"{num_replicas} ready replicas")

    def kill_replica(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to a replica's process; gives its id."""
        status = self.client.registry.get(name)
        assert status is not None
        os.kill(status.pid, number)
        return status.pid

    async def run_jobs(self, number: int, num_tokens: int) -> list[GenerationJob]:
        """Submit jobs and wait until each has tokens, as far as there are slots."""
        jobs = [make_job(max_tokens=num_tokens) for _ in range(number)]
        await self.client.submit(*jobs)
        for job in jobs[: 2 * NUM_SLOTS]:
            self.client.wait_for_start(job)
        return jobs

    def count_broken(self, jobs: list[GenerationJob], seconds: float = 60) -> int:
        """Wait for the ends of jobs; count those that are late, or not whole."""
        ends, num_broken = time.monotonic() + seconds, 0
        for job in jobs:
            try:
                events = self.client.wait_for_end(job, max(0.1, ends - time.monotonic()))
                check_whole(job, events)
            except AssertionError:
                num_broken += 1
        return num_broken

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
            try:
                script("greet").run(self.redis, ("gw",))
                self.client.send_tickets(sum(sweep(self.redis).tickets.values()))
            except (*UNREACHABLE, RedisError):
                continue
            except Exception as error:  # kombu's own, while the broker is away
                print("  no ticket:", type(error).__name__)


@contextlib.contextmanager
def open_lab() -> Iterator[Lab]:
    """Build a lab with ready replicas, and tear it down."""
    with tempfile.TemporaryDirectory(prefix="chaos") as folder:
        lab = Lab(Path(folder))
        try:
            lab.wait_until_ready()
            yield lab
        finally:
            lab.close()
