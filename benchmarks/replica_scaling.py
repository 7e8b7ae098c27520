"""What a second replica brings: tokens per second of two with a thread each, against one.

    python benchmarks/replica_scaling.py MODEL.gguf [--streams 8] [--tokens 96] [--rounds 3]

A node agent runs the replicas; a client of the relay keeps the same number of streams per replica
busy. One replica and two are measured in turn, since shared machines are noisy: the ratio counts.
Needs a core for each replica, and a little for the rest.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT), str(ROOT / "platform")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llamero.settings")

from inference.protocol.events import TERMINAL, Done  # noqa: E402
from inference.protocol.jobs import GenerationJob  # noqa: E402
from inference.protocol.replicas import ReplicaSpec, RuntimeProfile  # noqa: E402
from inference.protocol.sampling import SamplingParams  # noqa: E402
from inference.relay.connect import connect  # noqa: E402
from llamero.dispatch.dispatcher import Dispatcher  # noqa: E402
from tests.inference.node.conftest import Node  # noqa: E402
from tests.inference.relay.broker import Broker  # noqa: E402
from tests.inference.worker.replicas import Client, make_spec  # noqa: E402

NUM_PROMPT = 24


class Bench:
    """A broker, a node agent that runs replicas as they are wanted, and a client."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.options = options
        self.broker = Broker(folder)
        self.broker.start()
        self.client = Client(self.broker.url, connect(self.broker.url))
        self.node = Node(self.broker, self.client, folder)
        assert self.node.process.stdout is not None
        threading.Thread(target=self.node.process.stdout.read, daemon=True).start()
        self._num_jobs = 0

    async def close(self) -> None:
        """End everything."""
        await self.client.async_redis.aclose()
        self.node.process.terminate()
        self.node.process.wait(20)
        self.broker.stop()

    def use(self, num_replicas: int) -> None:
        """Have so many replicas, and no others; return when they are ready."""
        specs = [self._make_spec(number) for number in range(1, 1 + num_replicas)]
        self.node.want(*specs)
        for spec in specs:
            self.client.wait_for_status(spec.replica)
        while len(self.client.registry.list("chat")) > num_replicas:
            time.sleep(0.1)

    def _make_spec(self, number: int) -> ReplicaSpec:
        profile = RuntimeProfile(
            context_length=512, num_slots=self.options.streams, num_threads=1, num_threads_batch=1
        )
        files = (str(Path(self.options.model).resolve()),)
        return make_spec(f"chat-{number}", profile=profile, files=files)

    async def measure(self, num_replicas: int) -> float:
        """Give the tokens per second of full replicas, all that is computed included."""
        dispatcher = Dispatcher(
            self.broker.url, publish_ticket=lambda replica: self.client.send_tickets({replica: 1})
        )
        number = self.options.streams * num_replicas
        began = time.perf_counter()
        counts = await asyncio.gather(*(self._stream(dispatcher) for _ in range(number)))
        seconds = time.perf_counter() - began
        await dispatcher.close()
        return sum(counts) / seconds

    async def _stream(self, dispatcher: Dispatcher) -> int:
        """Run one stream to its end; gives its tokens."""
        self._num_jobs += 1
        own = self._num_jobs * 131
        job = GenerationJob(
            id=f"bench{self._num_jobs}",
            deployment="chat",
            owner="bench",
            salt=f"bench{self._num_jobs}",
            gateway=dispatcher.gateway_id,
            prompt_tokens=tuple((own + at * 17) % 30_000 + 100 for at in range(NUM_PROMPT)),
            max_tokens=self.options.tokens,
            sampling=SamplingParams(temperature=0),
            ignore_eos=True,
            deadline=time.time() + 600,
        )
        stream, arrived = await dispatcher.submit(job, max_queue=1000), asyncio.Event()
        stream.listen(arrived.set)
        while True:
            for event in stream.take():
                if isinstance(event, TERMINAL):
                    await stream.close()
                    assert isinstance(event, Done), event
                    return event.num_completion_tokens
            await arrived.wait()
            arrived.clear()


async def run(options: argparse.Namespace) -> None:
    """Measure in turn and print each round, then the median ratio."""
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        bench, ratios = Bench(Path(folder), options), []
        try:
            for _ in range(options.rounds):
                rates = []
                for num_replicas in (1, 2):
                    bench.use(num_replicas)
                    await bench.measure(num_replicas)
                    rates.append(await bench.measure(num_replicas))
                ratios.append(rates[1] / rates[0])
                print(f"1: {rates[0]:7.1f} tok/s   2: {rates[1]:7.1f} tok/s   x {ratios[-1]:.2f}")
        finally:
            await bench.close()
    print(f"two replicas give {statistics.median(ratios):.2f} times the throughput of one")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, default=8, help="slots of a replica, all busy")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
