"""Several hosts: in network namespaces of our own, a control host and two workers, links cut."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

from inference.relay.registry import ReplicaRegistry
from tests.chaos.system import Place, System, open_system
from tests.chaos.tally import Tally
from tests.chaos.trial import NotHere, Size, Trial
from tests.chaos.trials.restarts import make_question
from tests.processes import ROOT, child_environment, wait_until

SUBNET = "10.213.77"
CUT_SECONDS = 30.0
NUM_STREAMS = 12
NUM_TOKENS = 450
END_SECONDS = 60.0


class Network:
    """A bridge of our own with a namespace for each host; gone when it is closed."""

    def __init__(self) -> None:
        self._tag = f"lm{os.getpid() % 100_000}"
        self.control = self._name("control", 1)
        self.workers = [self._name(f"worker-{number}", 1 + number) for number in (1, 2)]

    def open(self) -> None:
        """Make it; raises NotHere where that is not allowed."""
        if shutil.which("ip") is None:
            raise NotHere("there is no ip command (Debian: apt install iproute2)")
        try:
            # The bridge lives in a namespace too: nothing of this machine's own network changes.
            _ip("netns", "add", self._tag)
        except subprocess.CalledProcessError as error:
            raise NotHere("network namespaces need root") from error
        self._in(self._tag, "link", "add", "bridge", "type", "bridge")
        self._in(self._tag, "link", "set", "bridge", "up")
        for place in (self.control, *self.workers):
            self._attach(place)

    def close(self) -> None:
        """Remove the namespaces, and all links with them."""
        for name in (*(_space(place) for place in (self.control, *self.workers)), self._tag):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "del", name)

    def set_link(self, place: Place, *, is_up: bool) -> None:
        """Cut or mend the cable of a host, at the bridge: the host itself is not told."""
        self._in(self._tag, "link", "set", self._port(place), "up" if is_up else "down")

    def _attach(self, place: Place) -> None:
        space, port = _space(place), self._port(place)
        _ip("netns", "add", space)
        pair = ("type", "veth", "peer", "name", "eth0", "netns", space)
        self._in(self._tag, "link", "add", port, *pair)
        self._in(self._tag, "link", "set", port, "master", "bridge", "up")
        self._in(space, "addr", "add", f"{place.address}/24", "dev", "eth0")
        self._in(space, "link", "set", "eth0", "up")
        self._in(space, "link", "set", "lo", "up")

    def _name(self, name: str, host: int) -> Place:
        prefix = ("ip", "netns", "exec", f"{self._tag}-{name}")
        return Place(name, f"{SUBNET}.{host}", prefix)

    @staticmethod
    def _port(place: Place) -> str:
        return place.name

    @staticmethod
    def _in(space: str, *words: str) -> None:
        _ip("-n", space, *words)


def _space(place: Place) -> str:
    return place.prefix[-1]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)


@contextlib.contextmanager
def open_network() -> Iterator[Network]:
    """Make the hosts' network and remove it."""
    network = Network()
    try:
        network.open()
        yield network
    finally:
        network.close()


async def cut_worker(tally: Tally, size: Size) -> None:
    """The cable of a worker is pulled for half a minute: all its streams go on elsewhere."""
    with open_network() as network, open_system(network.control, network.workers) as system:
        places = {place.name: place for place in network.workers}
        for number in range(size.rounds):
            texts = await _ask_all(system, number)
            asked = asyncio.create_task(_ask_all(system, number))
            await _wait_for_work(system)
            lost = places[("worker-1", "worker-2")[number % 2]]
            tally.strike(_num_running(system, lost.name))
            network.set_link(lost, is_up=False)
            cut_at = time.monotonic()
            answers = await asked
            seconds = time.monotonic() - cut_at
            tally.judge(seconds < END_SECONDS, f"the streams took {seconds:.0f} s")
            for text, answer in zip(texts, answers, strict=True):
                tally.judge(answer == text, "a stream is not the undisturbed one")
            await asyncio.sleep(max(0.0, cut_at + CUT_SECONDS - time.monotonic()))
            network.set_link(lost, is_up=True)
            await asyncio.to_thread(_wait_for_node, system, lost.name)
            await asyncio.to_thread(system.wait_until_ready)
            again = await _ask_all(system, number)
            tally.judge(again == texts, "after the cut there are other texts")
            num_replicas = len(system.ready())
            tally.judge(num_replicas == 2, f"after the cut {num_replicas} replicas are ready")


# Runs on the control host, where the gateways are, and prints what clients got.
ASK_PROGRAM = """
import asyncio, json, sys
from tests.chaos import traffic
ports, key, bodies, host = json.load(sys.stdin)
async def main():
    asked = (traffic.ask(ports, key, body, host=host) for body in bodies)
    answers = await asyncio.gather(*asked)
    print(json.dumps([one.text if one.is_finished else one.code for one in answers]))
asyncio.run(main())
"""


async def _ask_all(system: System, number: int) -> list[str]:
    """Have clients on the control host ask; gives texts, or what came instead."""
    place = system.control_place
    bodies = [make_question(100 * number + one, NUM_TOKENS) for one in range(NUM_STREAMS)]
    process = await asyncio.create_subprocess_exec(
        *place.prefix,
        sys.executable,
        "-c",
        ASK_PROGRAM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=child_environment(),
        cwd=ROOT,
    )
    words = json.dumps([system.ports, system.key, bodies, place.address]).encode()
    told, _ = await process.communicate(words)
    answers: list[str] = json.loads(told)
    return answers


async def _wait_for_work(system: System) -> None:
    """Return when both workers have jobs."""

    def has_work() -> bool:
        return all(_num_running(system, name) for name in ("worker-1", "worker-2"))

    await asyncio.to_thread(wait_until, has_work, seconds=20, what="work on both workers")


def _num_running(system: System, node: str) -> int:
    """Count the jobs that a node runs."""
    statuses = ReplicaRegistry(system.redis).list()
    names = [one.replica for one in statuses if one.node == node]
    return sum(int(system.redis.scard(f"lm:run:{name}")) for name in names)


def _wait_for_node(system: System, name: str) -> None:
    wait_until(lambda: system.redis.exists(f"lm:node:{name}"), seconds=30, what="the worker")


TRIALS = (Trial("P2", "three hosts, the link of a worker cut for 30 s", cut_worker, 1),)
