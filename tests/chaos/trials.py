"""The trials: each breaks something a number of times and counts what did not survive it."""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Failed
from inference.protocol.jobs import GenerationJob
from tests.chaos.lab import NUM_SLOTS, Lab
from tests.gateways import GatewayHome, Reader, cut_lengths, id_of, read_whole
from tests.inference.worker.replicas import make_job

NUM_CUT_STREAMS = 6


@dataclass(frozen=True)
class Outcome:
    """How often something was tried, and how often it failed."""

    num_tries: int
    num_failures: int


async def kill_replicas(lab: Lab, rounds: int) -> Outcome:
    """kill -9 of a replica under 32 streams: none fails, no token is lost or doubled."""
    rng = random.Random(1)
    num_jobs = num_broken = 0
    for _ in range(rounds):
        jobs = await lab.run_jobs(2 * NUM_SLOTS, num_tokens=300)
        lab.kill_replica(rng.choice(("chat-1", "chat-2")))
        num_broken += lab.count_broken(jobs)
        num_jobs += len(jobs)
        lab.wait_until_ready()
    return Outcome(num_jobs, num_broken)


async def kill_same_jobs_again(lab: Lab, rounds: int) -> Outcome:
    """The same streams lose their replica several times."""
    jobs = await lab.run_jobs(8, num_tokens=900)
    for _ in range(rounds):
        counts = [len(lab.client.events(job)) for job in jobs]
        lab.wait(
            lambda counts=counts: all(
                lab.has_ended(job) or len(lab.client.events(job)) > count + 5
                for job, count in zip(jobs, counts, strict=True)
            ),
            seconds=20,
        )
        for name in ("chat-1", "chat-2"):
            lab.kill_replica(name)
        lab.wait_until_ready()
    return Outcome(len(jobs), lab.count_broken(jobs))


async def pause_replica(lab: Lab, rounds: int) -> Outcome:
    """A replica stopped for longer than its lease writes nothing when it wakes up."""
    num_jobs = num_broken = 0
    for _ in range(rounds):
        jobs = await lab.run_jobs(8, num_tokens=1500)
        pid = lab.kill_replica("chat-1", signal.SIGSTOP)
        lab.wait(lambda: not lab.redis.exists("lm:rep:chat-1"), seconds=10)
        await asyncio.sleep(2)
        os.kill(pid, signal.SIGCONT)
        num_broken += lab.count_broken(jobs)
        num_jobs += len(jobs)
        lab.wait_until_ready()
    return Outcome(num_jobs, num_broken)


async def kill_node_agent(lab: Lab, rounds: int) -> Outcome:
    """kill -9 of the node agent, which ends its replicas too; a new one goes on."""
    num_jobs = num_broken = 0
    for _ in range(rounds):
        jobs = await lab.run_jobs(8, num_tokens=400)
        lab.nodes[-1].process.kill()
        lab.nodes.append(lab.start_node())
        num_broken += lab.count_broken(jobs)
        num_jobs += len(jobs)
        lab.wait_until_ready()
    return Outcome(num_jobs, num_broken)


async def kill_gateway(lab: Lab, rounds: int) -> Outcome:
    """kill -9 of a gateway: its jobs are stopped within 12 seconds, waiting ones too."""
    num_jobs = num_left = 0
    for _ in range(rounds):
        jobs = [make_job(max_tokens=4000, gateway="doomed") for _ in range(40)]
        process = multiprocessing.get_context("spawn").Process(
            target=follow_until_killed, args=(lab.broker.url, jobs)
        )
        process.start()
        lab.wait(lambda jobs=jobs: len(lab.client.events(jobs[0])) > 2, seconds=20)
        process.kill()
        process.join()
        lab.wait(lambda jobs=jobs: all(map(lab.has_ended, jobs)), seconds=12)
        num_left += sum(not lab.has_ended(job) for job in jobs)
        num_jobs += len(jobs)
    return Outcome(num_jobs, num_left)


async def crash_by_request(lab: Lab, rounds: int) -> Outcome:
    """A request that crashes engines costs two of them; then it is refused, its neighbours end."""
    num_jobs = num_broken = 0
    for number in range(rounds):
        jobs = await lab.run_jobs(12, num_tokens=300)
        poison = make_job(prompt_tokens=(70, 5, 100 + number))
        await lab.client.submit(poison)
        num_broken += lab.count_broken(jobs)
        end = lab.client.wait_for_end(poison, seconds=30)[-1]
        is_refused = isinstance(end, Failed) and end.code == ErrorCode.REQUEST_CRASHED_ENGINE
        num_broken += not is_refused
        num_jobs += len(jobs) + 1
        lab.wait_until_ready()
    return Outcome(num_jobs, num_broken)


async def kill_broker(lab: Lab, rounds: int) -> Outcome:
    """kill -9 and restart of the Redis-protocol server under streams."""
    return await _trouble_broker(lab, rounds, _restart)


async def pause_broker(lab: Lab, rounds: int) -> Outcome:
    """The Redis-protocol server is stopped for longer than a lease."""
    return await _trouble_broker(lab, rounds, _pause)


async def _trouble_broker(lab: Lab, rounds: int, trouble: Callable[[Lab], None]) -> Outcome:
    num_jobs = num_broken = 0
    for _ in range(rounds):
        jobs = await lab.run_jobs(16, num_tokens=500)
        await asyncio.to_thread(trouble, lab)
        num_broken += lab.count_broken(jobs)
        num_jobs += len(jobs)
        lab.wait_until_ready()
    return Outcome(num_jobs, num_broken)


async def cut_streams(lab: Lab, rounds: int) -> Outcome:
    """Streams are cut at random bytes and resumed at either gateway: all bytes come once."""
    return await asyncio.to_thread(_cut_streams, lab, rounds)


def _cut_streams(lab: Lab, rounds: int) -> Outcome:
    home = lab.open_gateways()
    ports = [gateway.port for gateway in home.start(2)]
    num_cuts = num_broken = 0
    try:
        with ThreadPoolExecutor(NUM_CUT_STREAMS) as pool:
            for number in range(rounds):
                seeds = range(number * NUM_CUT_STREAMS, (number + 1) * NUM_CUT_STREAMS)
                for cuts, is_whole in pool.map(lambda seed: _cut_stream(home, ports, seed), seeds):
                    num_cuts += cuts
                    num_broken += not is_whole
    finally:
        home.stop()
    return Outcome(num_cuts, num_broken)


def _cut_stream(home: GatewayHome, ports: list[int], seed: int) -> tuple[int, bool]:
    """Read one stream in pieces; gives how often it was cut, and whether it is whole."""
    rng = random.Random(seed)
    body = {"model": "chat", "prompt": f"Once {seed}", "max_tokens": 200, "stream": True}
    reader = Reader(home.key(), "/v1/completions", body)
    num_cuts = 0
    for length in cut_lengths(rng, longest=4000):
        reader.read(rng.choice(ports), length)
        if reader.is_finished:
            break
        num_cuts += 1
    numbers = [int(id_of(event)) for event in reader.events]
    is_gapless = numbers == list(range(1, len(numbers) + 1))
    return num_cuts, is_gapless and reader.events == read_whole(home.key(), ports[0], reader.run)


def _restart(lab: Lab) -> None:
    lab.broker.stop(signal.SIGKILL)
    time.sleep(1)
    lab.broker.start()


def _pause(lab: Lab) -> None:
    lab.broker.send_signal(signal.SIGSTOP)
    time.sleep(8)
    lab.broker.send_signal(signal.SIGCONT)


def follow_until_killed(url: str, jobs: list[GenerationJob]) -> None:
    """Be a gateway that follows jobs, in a process of its own."""
    from inference.relay.connect import connect_async
    from inference.relay.gateway import GatewayRelay

    async def follow() -> None:
        relay = GatewayRelay(connect_async(url))
        for job in jobs:
            await relay.submit(job, max_queue=1000)
        while True:
            await relay.greet(jobs[0].gateway)
            await asyncio.sleep(1)

    asyncio.run(follow())


Trial = Callable[[Lab, int], Awaitable[Outcome]]
TRIALS: tuple[tuple[str, Trial, int], ...] = (
    ("P1 kill -9 of a replica under 32 streams", kill_replicas, 5),
    ("P1 the same streams, killed again and again", kill_same_jobs_again, 3),
    ("P1 a paused replica wakes up, fenced", pause_replica, 1),
    ("P2 kill -9 of the node agent", kill_node_agent, 2),
    ("P3 kill -9 of a gateway stops its jobs", kill_gateway, 2),
    ("P4 cuts of streams, resumed at either gateway", cut_streams, 3),
    ("P5 kill -9 of the Redis-protocol server", kill_broker, 2),
    ("P5 the Redis-protocol server paused 8 s", pause_broker, 1),
    ("P21 a request that crashes engines", crash_by_request, 2),
)
