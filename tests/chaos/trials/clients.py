"""Clients that leave at any moment, or read so slowly that their answers pile up."""

import asyncio
import contextlib
import random
import socket
import time
from pathlib import Path

import psutil

from tests.chaos.lab import Lab, make_specs, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import ask, fill_pools, is_right, make_body, make_prompt, write_request
from tests.chaos.trial import Size, Trial
from tests.gateways import Gateway

NUM_CLIENTS = 48
NUM_NEIGHBOURS = 4
NUM_BEFORE = 1000
NEIGHBOUR_TOKENS = 300
FREE_SECONDS = 3.0
SETTLE_SECONDS = 8.0


async def leave_at_any_moment(tally: Tally, size: Size) -> None:
    """Clients leave before, in and after their requests; slots and memory come back.

    A round is a client that leaves. Neighbours that stay get what they would have got.
    """
    async with open_lab() as lab:
        [gateway] = lab.start_gateways(1)
        assert lab.home is not None
        key, process = lab.home.key(), psutil.Process(gateway.process.pid)
        await fill_pools(gateway.port, key)
        await _leave(gateway.port, key, range(NUM_BEFORE), Tally())
        before = await _settle(lab, process)
        stop = asyncio.Event()
        neighbours = [
            asyncio.create_task(_stay(gateway.port, key, 10_000 + one, stop, tally))
            for one in range(NUM_NEIGHBOURS)
        ]
        await _leave(gateway.port, key, range(NUM_BEFORE, NUM_BEFORE + size.rounds), tally)
        stop.set()
        await asyncio.gather(*neighbours)
        began = time.monotonic()
        is_free = await asyncio.to_thread(lab.wait, lambda: not _busy_keys(lab), FREE_SECONDS)
        tally.judge(is_free, f"after {time.monotonic() - began:.0f} s there is {_busy_keys(lab)}")
        after = await _settle(lab, process)
        tally.judge(after.fds <= before.fds + 4, f"descriptors {before.fds} -> {after.fds}")
        tally.judge(after.threads <= before.threads, f"threads {before.threads} -> {after.threads}")
        growth = after.rss / before.rss - 1
        tally.judge(growth < 0.05, f"the gateway's memory grew by {growth:.1%}")
        for status in lab.client.registry.list():
            tally.judge(not status.stats.num_running, "an engine still works on something")


class _Use:
    """What a gateway holds when nobody is connected."""

    def __init__(self, process: psutil.Process) -> None:
        self.fds = process.num_fds()
        self.threads = process.num_threads()
        self.rss = process.memory_info().rss


async def _settle(lab: Lab, process: psutil.Process) -> _Use:
    await asyncio.sleep(2.5)
    return _Use(process)


async def _leave(port: int, key: str, numbers: range, tally: Tally) -> None:
    left = iter(numbers)

    async def client() -> None:
        for number in left:
            tally.strike(await _visit(port, key, number))

    await asyncio.gather(*(client() for _ in range(NUM_CLIENTS)))


async def _visit(port: int, key: str, number: int) -> bool:
    """Ask for much, and leave at a random moment; tells whether the answer was cut off."""
    rng = random.Random(number)
    fields = {"stream": rng.random() < 0.7, "n": rng.choice((1, 1, 1, 3))}
    body = make_body(make_prompt(number), 3000) | fields
    if not fields["stream"]:
        del body["stream_options"]
    words = write_request(key, body)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        if rng.random() < 0.1:
            writer.write(words[: rng.randrange(len(words))])
            await asyncio.sleep(rng.uniform(0, 0.01))
            return True
        writer.write(words)
        phase = rng.choice((0.0, 0.005, 0.02, 0.1, 0.4))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(rng.uniform(0, phase)):
                while await reader.read(4096):
                    pass
                return False
        return True
    finally:
        if rng.random() < 0.5:
            writer.transport.abort()
        writer.close()


async def _stay(port: int, key: str, number: int, stop: asyncio.Event, tally: Tally) -> None:
    """Have streams one after the other, each of which must be whole."""
    while not stop.is_set():
        prompt = make_prompt(number)
        answer = await ask(port, key, make_body(prompt, NEIGHBOUR_TOKENS))
        is_kept = is_right(answer, prompt, NEIGHBOUR_TOKENS)
        tally.judge(is_kept, f"a neighbour got {answer.code or answer.status}")
        number += NUM_NEIGHBOURS


def _busy_keys(lab: Lab) -> list[str]:
    """Name the sets of jobs that run or wait."""
    found = []
    for pattern in ("lm:run:*", "lm:wait:*", "lm:awake:*", "lm:cancel:*"):
        found += [key.decode() for key in lab.redis.scan_iter(pattern)]
    return found


async def read_slowly(tally: Tally, size: Size) -> None:
    """Slow readers of long streams cost neither memory nor their neighbours' speed.

    A round is a slow reader. Each token comes with its best alternatives, so that a stream has far
    more bytes than sockets hold. The neighbour's speed is that beside as many quick readers.
    """
    async with open_lab(*make_specs(file="fake:?step_ms=50", num_slots=64)) as lab:
        [gateway] = lab.start_gateways(1)
        assert lab.home is not None
        key, process = lab.home.key(), psutil.Process(gateway.process.pid)
        quick = _start_readers(gateway, key, range(size.rounds), 1 << 20)
        await asyncio.sleep(SETTLE_SECONDS)
        usual = max([await _measure_rate(gateway.port, key) for _ in range(2)])
        await _stop(quick)
        rss = process.memory_info().rss
        slow = _start_readers(gateway, key, range(size.rounds, 2 * size.rounds), 10)
        await asyncio.sleep(SETTLE_SECONDS)
        beside = max([await _measure_rate(gateway.port, key) for _ in range(2)])
        per_reader = (process.memory_info().rss - rss) / size.rounds
        # Those whose answers lie in the gateway, and those that it has given up.
        tally.strike(_count_unread(gateway) + sum(reader.done() for reader in slow))
        await _stop(slow)
        lost = 1 - beside / usual
        tally.judge(lost < 0.05, f"a stream beside slow readers is {lost:.0%} slower")
        tally.judge(per_reader < 1 << 20, f"a slow reader costs {per_reader / 1024:.0f} KiB")
        is_real = tally.num_struck > size.rounds // 2
        tally.judge(is_real, f"only {tally.num_struck} readers were slow enough to tell")


def _start_readers(
    gateway: Gateway, key: str, numbers: range, num_bytes: int
) -> "list[asyncio.Task[None]]":
    return [asyncio.create_task(_crawl(gateway, key, number, num_bytes)) for number in numbers]


async def _stop(readers: "list[asyncio.Task[None]]") -> None:
    for one in readers:
        one.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    await asyncio.sleep(1)


async def _crawl(gateway: Gateway, key: str, number: int, num_bytes: int) -> None:
    """Read at most so many bytes a second, to the end or until the gateway gives up."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_connect(line, ("127.0.0.1", gateway.port))
        body = make_body(make_prompt(number), 3000, logprobs=5)
        await loop.sock_sendall(line, write_request(key, body))
        with contextlib.suppress(OSError):
            while await loop.sock_recv(line, num_bytes):
                await asyncio.sleep(1 if num_bytes < 1000 else 0)
    finally:
        line.close()


def _count_unread(gateway: Gateway) -> int:
    """Count the gateway's connections that have bytes which their clients do not take."""
    port, num_full = f":{gateway.port:04X}", 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        num_full += words[1].endswith(port) and int(words[4].split(":")[0], 16) > 0
    return num_full


async def _measure_rate(port: int, key: str) -> float:
    """Give the tokens per second of one stream."""
    answer = await ask(port, key, make_body(make_prompt(777), 60))
    return 59 / (answer.ended_at - answer.first_at)


TRIALS = (
    Trial("P7", "clients leave at random moments", leave_at_any_moment, 5000),
    Trial("P22", "slow readers of long streams", read_slowly, 100),
)
