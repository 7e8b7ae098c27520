"""Every part is restarted in turn under load: with time to drain, no request fails."""

import asyncio
import contextlib
import itertools
import subprocess
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from tests.chaos.system import MODEL, Part, Place, System, open_system
from tests.chaos.tally import Tally
from tests.chaos.traffic import Answer, ask, make_prompt
from tests.chaos.trial import Size, Trial

NUM_CLIENTS = 6
NUM_TOKENS = 160
STOP_SECONDS = 45.0
PLACES = (Place("node-1"), Place("node-2"))


@dataclass(slots=True)
class Load:
    """Clients that ask one thing after the other, at whichever gateway takes it."""

    system: System
    tally: Tally
    num_open: int = 0
    num_done: int = 0
    is_over: bool = False
    may_refuse: bool = False
    texts: dict[int, str] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    async def run(self) -> None:
        """Ask until it is over."""
        await asyncio.gather(*(self._client(number) for number in range(NUM_CLIENTS)))

    async def _client(self, number: int) -> None:
        while not self.is_over:
            question = next(self._numbers) % 24
            ports = self.system.ports[:: 1 if number % 2 else -1]
            self.num_open += 1
            answer = await ask(ports, self.system.key, make_question(question))
            self.num_open -= 1
            self._judge(question, answer)
            if answer.is_retryable:
                await asyncio.sleep(0.5)

    def _judge(self, question: int, answer: Answer) -> None:
        """It has ended well, with the text it always has, or is worth another try where it may."""
        self.num_done += 1
        ended = answer.code or (answer.status if answer.status != 200 else "no end")
        is_kept = answer.is_finished or (self.may_refuse and answer.is_retryable)
        self.tally.judge(is_kept, f"a request ended with {ended}")
        if answer.is_finished:
            known = self.texts.setdefault(question, answer.text)
            self.tally.judge(known == answer.text, "a text differs from the undisturbed one")


def make_question(number: int, num_tokens: int = NUM_TOKENS) -> dict[str, object]:
    """Ask the tiny model, which never ends by itself."""
    prompt = [3 + token for token in make_prompt(number)]
    fields = {"temperature": 0, "ignore_eos": True, "stream_options": {"include_usage": True}}
    return {"model": MODEL, "prompt": prompt, "max_tokens": num_tokens, "stream": True} | fields


async def restart_gateways(tally: Tally, size: Size) -> None:
    """One gateway after the other, as behind a proxy that passes over what refuses connections."""
    async with _loaded_system(tally) as (system, load):
        for _ in range(size.rounds):
            for port, gateway in system.gateways.items():
                await _restart(gateway, load, tally)
                await asyncio.to_thread(system.wait_until_listening, port)
                await _wait_for(load, NUM_CLIENTS)


async def restart_others(tally: Tally, size: Size) -> None:
    """The control worker, the node agents with their replicas, then the broker."""
    async with _loaded_system(tally) as (system, load):
        for _ in range(size.rounds):
            for place in PLACES:
                await _restart(system.parts[place.name], load, tally)
                await asyncio.to_thread(system.wait_until_ready)
                await _wait_for(load, NUM_CLIENTS)
            await _restart(system.parts["control"], load, tally)
            await _restart_broker(system, load, tally)


@contextlib.asynccontextmanager
async def _loaded_system(tally: Tally) -> AsyncIterator[tuple[System, Load]]:
    """Run clients as long as parts are restarted."""
    with open_system(PLACES[0], PLACES) as system:
        load = Load(system, tally)
        running = asyncio.create_task(load.run())
        try:
            await _wait_for(load, NUM_CLIENTS)
            yield system, load
        finally:
            load.is_over = True
            await running


async def _restart(part: Part, load: Load, tally: Tally) -> None:
    """Stop a part in good order, within its time, and start it again."""
    tally.strike(load.num_open)
    began = time.monotonic()
    try:
        code = await asyncio.to_thread(part.stop, STOP_SECONDS)
    except subprocess.TimeoutExpired:
        part.kill()
        code = -1
    seconds = time.monotonic() - began
    tally.judge(code == 0, f"a part ended with {code} after {seconds:.0f} s")
    part.start()


async def _restart_broker(system: System, load: Load, tally: Tally) -> None:
    """Nothing stands in for it: streams go on when it is back, requests meanwhile are refused."""
    load.may_refuse = True
    tally.strike(load.num_open)
    await asyncio.to_thread(system.broker.stop)
    await asyncio.to_thread(system.broker.start)
    await asyncio.to_thread(system.wait_until_ready)
    await _wait_for(load, 2 * NUM_CLIENTS)
    load.may_refuse = False


async def _wait_for(load: Load, number: int) -> None:
    """Return when so many more requests are answered."""
    wanted, ends = load.num_done + number, time.monotonic() + 60
    while load.num_done < wanted and time.monotonic() < ends:
        await asyncio.sleep(0.05)


TRIALS = (
    Trial("P10", "rolling restart of gateways under load", restart_gateways, 2),
    Trial("P10", "rolling restart of agents, control and broker under load", restart_others, 1),
)
