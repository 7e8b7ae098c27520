"""The ledger has each job once, and what was told, whatever was killed meanwhile."""

import asyncio
import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from inference.relay.keys import USAGE
from tests.chaos.lab import NAMES, Lab, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import ask, make_body, make_prompt, write_request
from tests.chaos.trial import Size, Trial
from tests.gateways import GatewayHome
from tests.processes import ROOT, child_environment

NUM_CLIENTS = 24
NUM_KILLS = 5
SETTLE_SECONDS = 40.0
LEAVERS = 0.2
WRITE_PROGRAM = """
import contextlib, time
from django.conf import settings
from inference.relay.connect import UNREACHABLE, RedisError, connect
from llamero.usage.ledger import move_records
redis = connect(settings.REDIS_URL)
while True:
    with contextlib.suppress(*UNREACHABLE, RedisError):
        move_records(redis)
    time.sleep(0.05)
"""


class Asked(NamedTuple):
    """What became of a request: how many tokens its client saw, and whether it saw the end."""

    request_id: str
    num_tokens: int
    is_whole: bool
    has_begun: bool


class Writer:
    """The ledger's writer as a process of its own, which may be killed at any step."""

    def __init__(self, home: GatewayHome, url: str) -> None:
        self._environment = child_environment(LLAMERO_HOME=str(home.folder), LLAMERO_REDIS_URL=url)
        self.start()

    def start(self) -> None:
        """Start it."""
        command = [sys.executable, str(ROOT / "manage.py"), "shell", "--verbosity=0", "-c"]
        self.process = subprocess.Popen([*command, WRITE_PROGRAM], env=self._environment)

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait()


async def keep_a_ledger(tally: Tally, size: Size) -> None:
    """Requests, clients that leave, replicas, the broker and the ledger's writer killed.

    A round is a request.
    """
    async with open_lab() as lab:
        ports = [gateway.port for gateway in lab.start_gateways(2)]
        assert lab.home is not None
        writer = Writer(lab.home, lab.broker.url)
        try:
            numbers = iter(range(size.rounds))
            clients = [_be_client(lab, ports, numbers) for _ in range(NUM_CLIENTS)]
            troubling = asyncio.create_task(_trouble(lab, writer, tally))
            asked = [one for found in await asyncio.gather(*clients) for one in found]
            await troubling
            is_settled = await asyncio.to_thread(lab.wait, lambda: _is_settled(lab), SETTLE_SECONDS)
            tally.judge(is_settled, f"not settled: {_open_keys(lab)}")
        finally:
            writer.kill()
        _judge(_read_rows(lab.home), asked, tally)


async def _be_client(lab: Lab, ports: list[int], numbers: Iterator[int]) -> list[Asked]:
    assert lab.home is not None
    return [await _ask(ports, lab.home.key(), number) for number in numbers]


async def _ask(ports: list[int], key: str, number: int) -> Asked:
    """Make a request; one client in five leaves after some tokens."""
    rng = random.Random(number)
    request_id, num_tokens = f"trial-{number}", rng.randrange(1, 120)
    body, port = make_body(make_prompt(number), num_tokens), rng.choice(ports)
    if rng.random() < LEAVERS:
        body["max_tokens"] = 2000
        words = write_request(key, body, request_id=request_id)
        num_seen = await _leave(port, words, rng.randrange(0, 60))
        return Asked(request_id, num_seen, False, num_seen > 0)
    answer = await ask(port, key, body, request_id=request_id)
    used = int(answer.usage.get("completion_tokens", 0))
    return Asked(request_id, used, answer.is_finished, answer.num_events > 0)


async def _leave(port: int, words: bytes, num_events: int) -> int:
    """Leave after so many events, each of which has a token at least."""
    num_seen = 0
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(words)
            while num_seen < num_events and (line := await reader.readline()):
                num_seen += line.startswith(b"data: {") and b'"text":' in line
            writer.transport.abort()
    return num_seen


async def _trouble(lab: Lab, writer: Writer, tally: Tally) -> None:
    """Kill replicas one by one, the writer with each, and the broker in between."""
    for number in range(NUM_KILLS):
        await asyncio.sleep(1.5)
        await asyncio.to_thread(lab.wait_until_ready)
        lab.kill_replica(NAMES[number % 2])
        tally.strike()
        await asyncio.to_thread(writer.kill)
        writer.start()
        if number == NUM_KILLS // 2:
            await asyncio.to_thread(lab.broker.stop, signal.SIGKILL)
            await asyncio.sleep(1)
            await asyncio.to_thread(lab.broker.start)
            tally.strike()


def _open_keys(lab: Lab) -> list[bytes]:
    """Name what runs or waits, and records that the ledger does not have."""
    patterns = ("lm:run:*", "lm:wait:*", USAGE)
    return [key for pattern in patterns for key in lab.redis.keys(pattern)]


def _is_settled(lab: Lab) -> bool:
    return not lab.redis.xlen(USAGE) and not [
        one for one in _open_keys(lab) if one != USAGE.encode()
    ]


def _read_rows(home: GatewayHome) -> list[tuple[str, int]]:
    """Give the request and the answer's tokens of each row."""
    with contextlib.closing(sqlite3.connect(home.folder / "llamero.sqlite3")) as database:
        query = "SELECT request_id, num_completion_tokens FROM usage_ledgerrow"
        rows: list[tuple[str, int]] = database.execute(query).fetchall()
        query = "SELECT sum(num_jobs), sum(num_completion_tokens) FROM usage_usagehour"
        sums = database.execute(query).fetchone()
    assert sums == (len(rows), sum(number for _, number in rows)), sums
    return rows


def _judge(rows: list[tuple[str, int]], asked: list[Asked], tally: Tally) -> None:
    numbers, tokens = Counter(name for name, _ in rows), dict(rows)
    tally.judge(max(numbers.values()) == 1, "a job has several rows")
    tally.judge(set(numbers) <= {one.request_id for one in asked}, "a row of nobody's")
    num_left = 0
    for one in asked:
        told = tokens.get(one.request_id)
        if one.is_whole:
            tally.judge(told == one.num_tokens, f"told {one.num_tokens}, in the ledger {told}")
        elif one.has_begun:
            num_left += 1
            tally.judge(told is not None, "a job that had begun has no row")
            tally.judge((told or 0) >= one.num_tokens, "less in the ledger than was told")
    tally.strike(num_left)
    num_whole = sum(one.is_whole for one in asked)
    tally.judge(num_whole > len(asked) // 2, f"only {num_whole} of {len(asked)} ended well")


TRIALS = (Trial("P27", "the ledger under kills of all that writes it", keep_a_ledger, 1000),)
