"""What routing by warm prefixes brings: the share of prompt tokens that need not be computed.

    python benchmarks/prefix_routing.py [--model MODEL.gguf] [--conversations 24] [--turns 6]

Conversations of several turns run at two replicas, some at a time; each turn sends all that was
said so far. Once jobs are sent where their beginning is warm, once their prompts carry no marks, so
that any replica gets them; the replicas themselves are the same. Without a model the engine is the
fake one, which is as strict about prefixes. The third figure is what one cache for all would give.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT), str(ROOT / "platform")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llamero.settings")

from inference.protocol.events import TERMINAL, Done, Event, Tokens  # noqa: E402
from inference.protocol.jobs import GenerationJob  # noqa: E402
from inference.protocol.replicas import RuntimeProfile  # noqa: E402
from inference.protocol.sampling import SamplingParams  # noqa: E402
from inference.relay import gateway, marks  # noqa: E402
from inference.relay.connect import connect  # noqa: E402
from llamero.dispatch.dispatcher import Dispatcher  # noqa: E402
from tests.inference.node.conftest import Node  # noqa: E402
from tests.inference.relay.broker import Broker  # noqa: E402
from tests.inference.worker.replicas import Client, make_spec  # noqa: E402

NAMES = ("chat-1", "chat-2")
FAKE_FILE = "fake:?step_ms=2"


@dataclass
class Totals:
    """Prompt tokens of all turns: sent, found computed, and known to some replica."""

    sent: int = 0
    cached: int = 0
    known: int = 0


class Talks:
    """Conversations that run beside each other; ``run`` is the name of all their owners."""

    def __init__(self, dispatcher: Dispatcher, options: argparse.Namespace, run: str) -> None:
        self.totals = Totals()
        self._dispatcher = dispatcher
        self._options = options
        self._run = run
        self._rng = random.Random(7)
        self._system = self._words(options.system)
        self._places = asyncio.Semaphore(options.at_once)

    async def hold(self) -> Totals:
        """Hold them all; gives what was sent and cached."""
        numbers = range(self._options.conversations)
        await asyncio.gather(*(self._talk(number) for number in numbers))
        return self.totals

    async def _talk(self, number: int) -> None:
        said = self._system
        for turn in range(self._options.turns):
            known = len(said) if turn or number else 0
            said += self._words(self._options.question)
            async with self._places:
                done, answer = await self._ask(f"{self._run}-{number}-{turn}", said)
            self.totals.sent += len(said)
            self.totals.cached += done.num_cached_tokens
            self.totals.known += known
            said += answer
            await asyncio.sleep(self._rng.random() * 0.05)

    async def _ask(self, name: str, said: tuple[int, ...]) -> tuple[Done, tuple[int, ...]]:
        job = GenerationJob(
            id=name,
            deployment="chat",
            owner=self._run,
            salt=self._run,
            gateway=self._dispatcher.gateway_id,
            prompt_tokens=said,
            max_tokens=self._options.answer,
            sampling=SamplingParams(temperature=0),
            ignore_eos=True,
            deadline=time.time() + 600,
        )
        events = await self._follow(job)
        tokens = [token for e in events if isinstance(e, Tokens) for token in e.token_ids]
        assert isinstance(events[-1], Done), events[-1]
        return events[-1], tuple(tokens)

    async def _follow(self, job: GenerationJob) -> list[Event]:
        stream, arrived = await self._dispatcher.submit(job, max_queue=1000), asyncio.Event()
        stream.listen(arrived.set)
        events: list[Event] = []
        while not events or not isinstance(events[-1], TERMINAL):
            events += stream.take()
            if not events or not isinstance(events[-1], TERMINAL):
                await arrived.wait()
                arrived.clear()
        await stream.close()
        return events

    def _words(self, count: int) -> tuple[int, ...]:
        return tuple(self._rng.randrange(3, 250) for _ in range(count))


async def measure(client: Client, url: str, options: argparse.Namespace, run: str) -> float:
    """Print one line; gives the cached share of all prompt tokens."""
    sender = client.send_tickets
    dispatcher = Dispatcher(url, publish_ticket=lambda replica: sender({replica: 1}))
    began = time.perf_counter()
    totals = await Talks(dispatcher, options, run).hold()
    seconds = time.perf_counter() - began
    await dispatcher.close()
    share, known = totals.cached / totals.sent, totals.known / totals.sent
    print(
        f"{run:8s} cached {share:6.1%} of {totals.sent} prompt tokens in {seconds:5.1f} s", end=""
    )
    print(f"   (all that was known: {known:.1%})")
    return share


async def compare(options: argparse.Namespace) -> None:
    """Measure with marks and without, each with salts of its own: nothing is left from before."""
    files = (str(Path(options.model).resolve()),) if options.model else (FAKE_FILE,)
    profile = RuntimeProfile(
        num_slots=options.slots, context_length=4096, num_threads=1, num_threads_batch=1
    )
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        broker = Broker(Path(folder))
        broker.start()
        client = Client(broker.url, connect(broker.url))
        node = Node(broker, client, Path(folder))
        assert node.process.stdout is not None
        threading.Thread(target=node.process.stdout.read, daemon=True).start()
        try:
            node.want(*(make_spec(name, files=files, profile=profile) for name in NAMES))
            for name in NAMES:
                client.wait_for_status(name)
            shares = []
            for run, make_marks in (("routed", marks.prefix_marks), ("anywhere", lambda job: ())):
                gateway.prefix_marks = make_marks
                shares.append(await measure(client, broker.url, options, run))
        finally:
            await client.async_redis.aclose()
            node.process.terminate()
            node.process.wait(20)
            broker.stop()
    computed = (1 - shares[1]) / (1 - shares[0])
    print(f"without routing {computed:.2f} times as many prompt tokens are computed")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="a GGUF file; without one the fake engine runs")
    parser.add_argument("--conversations", type=int, default=24)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--at-once", type=int, default=8, help="requests at the same time")
    parser.add_argument("--slots", type=int, default=8, help="slots of each replica")
    parser.add_argument("--system", type=int, default=64, help="tokens that all begin with")
    parser.add_argument("--question", type=int, default=60, help="tokens that a turn adds")
    parser.add_argument("--answer", type=int, default=24, help="tokens of an answer")
    asyncio.run(compare(parser.parse_args()))


if __name__ == "__main__":
    main()
