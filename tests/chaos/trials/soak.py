"""All kinds of trouble for a while: what the parts hold afterwards is what they held before."""

import asyncio
import itertools
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable

import psutil

from tests.chaos.lab import NAMES, Lab, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import Answer, ask, fill_pools, is_right, make_body, make_prompt
from tests.chaos.trial import Size, Trial

NUM_CLIENTS = 12
NUM_TOKENS = 80
PAUSE_SECONDS = 2.5
WARM_SECONDS = 15.0
# Of memory; what an allocator keeps for itself differs by more than that from second to second.
GROWTH_SHARE = 0.05


async def soak(tally: Tally, size: Size) -> None:
    """Clients come without a break while parts are killed and paused; a round is a second."""
    async with open_lab() as lab:
        [gateway] = lab.start_gateways(1)
        assert lab.home is not None
        watched = {
            "gateway": psutil.Process(gateway.process.pid),
            "agent": psutil.Process(lab.nodes[0].process.pid),
        }
        numbers = itertools.count()
        await fill_pools(gateway.port, lab.home.key())
        await _load(lab, gateway.port, numbers, WARM_SECONDS, Tally())
        before = await _look(lab, watched)
        await _load(lab, gateway.port, numbers, size.rounds, tally)
        after = await _look(lab, watched)
        for what, number in before.items():
            allowed = number * (1 + GROWTH_SHARE) if what.endswith("memory") else number + 3
            tally.judge(after[what] <= allowed, f"{what}: {number} -> {after[what]}")


async def _load(
    lab: Lab, port: int, numbers: "itertools.count[int]", seconds: float, tally: Tally
) -> None:
    """Have clients ask and parts break for so long."""
    assert lab.home is not None
    ends, key = time.monotonic() + seconds, lab.home.key()

    async def client() -> None:
        while time.monotonic() < ends:
            prompt = make_prompt(next(numbers))
            answer = await ask(port, key, make_body(prompt, NUM_TOKENS))
            is_kept = is_right(answer, prompt, NUM_TOKENS) or answer.is_retryable
            tally.judge(is_kept, f"a request got {answer.code or answer.status}")
            if answer.is_retryable:
                await asyncio.sleep(min(2, answer.retry_after))

    async def trouble() -> None:
        rng = random.Random(25)
        while time.monotonic() < ends:
            await rng.choice(_TROUBLES)(lab)
            tally.strike()
            await asyncio.sleep(PAUSE_SECONDS)

    await asyncio.gather(trouble(), *(client() for _ in range(NUM_CLIENTS)))
    await asyncio.to_thread(lab.wait_until_ready)


async def _kill_replica(lab: Lab) -> None:
    names = [name for name in NAMES if lab.client.registry.get(name)]
    if names and (pid := lab.status(names[-1]).pid):
        os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(lab.wait_until_ready)


async def _pause_broker(lab: Lab) -> None:
    lab.broker.send_signal(signal.SIGSTOP)
    await asyncio.sleep(1)
    lab.broker.send_signal(signal.SIGCONT)


async def _kill_connections(lab: Lab) -> None:
    for kind in ("normal", "pubsub"):
        lab.redis.client_kill_filter(_type=kind, skipme=True)


async def _leave(lab: Lab) -> None:
    """Clients that go away in the middle."""
    assert lab.home is not None
    port, key = lab.home.ports[0], lab.home.key()
    left: list[asyncio.Task[Answer]] = [
        asyncio.create_task(ask(port, key, make_body(make_prompt(10**6 + one), 3000)))
        for one in range(20)
    ]
    await asyncio.sleep(0.5)
    for one in left:
        one.cancel()
    await asyncio.gather(*left, return_exceptions=True)


_TROUBLES: tuple[Callable[[Lab], Awaitable[None]], ...] = (
    _kill_replica,
    _pause_broker,
    _kill_connections,
    _leave,
)


async def _look(lab: Lab, watched: dict[str, psutil.Process]) -> dict[str, int]:
    """Count what is held once all is quiet."""
    await asyncio.sleep(4)
    found = {"keys of the broker": len(lab.redis.keys("lm:*"))}
    for name, process in watched.items():
        found[f"{name}'s descriptors"] = process.num_fds()
        found[f"{name}'s threads"] = process.num_threads()
        found[f"{name}'s memory"] = process.memory_info().rss
    return found


TRIALS = (Trial("P25", "a soak with trouble: handles, threads, memory, keys", soak, 60),)
