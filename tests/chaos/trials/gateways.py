"""Gateways are killed, and connections to them cut, under streams that may be resumed."""

import asyncio
import json
import multiprocessing
import random
from concurrent.futures import ThreadPoolExecutor

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from inference.protocol.jobs import GenerationJob
from tests.chaos.lab import Lab, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import make_body, make_prompt
from tests.chaos.trial import Size, Trial
from tests.gateways import Reader, cut_lengths, id_of, read_whole, text_of
from tests.inference.worker.replicas import make_job
from tests.inference.worker.wholeness import foresee, spell

NUM_READERS = 6
NUM_TOKENS = 250
MAX_CUTS = 20  # of one stream


async def kill_followed_jobs(tally: Tally, size: Size) -> None:
    """kill -9 of a gateway: the jobs that only it followed are stopped within 12 seconds."""
    async with open_lab() as lab:
        for _ in range(size.rounds):
            jobs = [make_job(max_tokens=4000, gateway="doomed") for _ in range(40)]
            process = multiprocessing.get_context("spawn").Process(
                target=follow_until_killed, args=(lab.broker.url, jobs)
            )
            process.start()
            lab.wait(lambda jobs=jobs: len(lab.client.events(jobs[0])) > 2, seconds=20)
            tally.strike(sum(not lab.has_ended(job) for job in jobs))
            process.kill()
            process.join()
            lab.wait(lambda jobs=jobs: all(map(lab.has_ended, jobs)), seconds=12)
            for job in jobs:
                tally.judge(lab.has_ended(job), "a job goes on that nobody follows")


async def kill_gateway(tally: Tally, size: Size) -> None:
    """kill -9 of a gateway: its streams go on at another one, no byte lost or repeated."""
    async with open_lab() as lab:
        doomed, other = lab.start_gateways(2)
        for number in range(size.rounds):
            readers = [_make_reader(lab, 100 * number + index, 400) for index in range(8)]
            with ThreadPoolExecutor(len(readers)) as pool:
                reading = [pool.submit(one.read, doomed.port) for one in readers]
                lab.wait(lambda readers=readers: all(len(r.events) > 5 for r in readers), 30)
                tally.strike(sum(not reader.is_finished for reader in readers))
                doomed.kill()
                for one in reading:
                    one.result()
                list(pool.map(lambda reader: reader.read(other.port), readers))
            for index, reader in enumerate(readers):
                _judge(lab, reader, 100 * number + index, 400, other.port, tally)
            doomed.start()
            doomed.wait_until_listening()


async def cut_streams(tally: Tally, size: Size) -> None:
    """Streams are cut at random bytes and resumed at either gateway: each event comes once.

    A round is a cut.
    """
    async with open_lab() as lab:
        ports = [gateway.port for gateway in lab.start_gateways(2)]
        await asyncio.to_thread(_cut_streams, lab, ports, tally, size.rounds)


def _cut_streams(lab: Lab, ports: list[int], tally: Tally, num_cuts: int) -> None:
    seed = 0
    with ThreadPoolExecutor(NUM_READERS) as pool:
        while tally.num_struck < num_cuts:
            seeds = range(seed, seed + NUM_READERS)
            for cuts, is_kept in pool.map(lambda one: _cut_stream(lab, ports, one), seeds):
                tally.strike(cuts)
                tally.judge(is_kept, "a stream that was cut is not whole")
            seed += NUM_READERS


def _cut_stream(lab: Lab, ports: list[int], seed: int) -> tuple[int, bool]:
    """Read one stream in pieces; gives how often it was cut, and whether it is whole."""
    rng, num_cuts = random.Random(seed), 0
    reader = _make_reader(lab, seed, NUM_TOKENS)
    for length in cut_lengths(rng, longest=3000):
        is_last = num_cuts == MAX_CUTS
        reader.read(rng.choice(ports), float("inf") if is_last else length)
        if reader.is_finished or is_last:
            break
        num_cuts += 1
    alone = Tally()
    _judge(lab, reader, seed, NUM_TOKENS, ports[0], alone)
    return num_cuts, not alone.reasons


async def cut_sockets(tally: Tally, size: Size) -> None:
    """WebSockets are dropped after random frames and resumed: each delta comes once."""
    async with open_lab() as lab:
        ports = [gateway.port for gateway in lab.start_gateways(2)]
        assert lab.home is not None
        seed = 0
        while tally.num_struck < size.rounds:
            seeds = range(seed, seed + NUM_READERS)
            chats = [_cut_chat(ports, lab.home.key(), one) for one in seeds]
            for cuts, is_kept in await asyncio.gather(*chats):
                tally.strike(cuts)
                tally.judge(is_kept, "a chat whose socket was cut is not whole")
            seed += NUM_READERS


async def _cut_chat(ports: list[int], key: str, seed: int) -> tuple[int, bool]:
    """Follow one chat over many sockets; gives how often it was cut, and whether it is whole."""
    rng, deltas, run, num_cuts = random.Random(seed), [], "", 0
    headers = {"Authorization": f"Bearer {key}"}
    start = {
        "type": "start",
        "model": "chat",
        "messages": [{"role": "user", "content": f"Chat {seed}"}],
        "max_tokens": NUM_TOKENS,
        "resumable": True,
    }
    while True:
        address = f"ws://127.0.0.1:{rng.choice(ports)}/ws/v1/chat"
        socket = await connect(address, additional_headers=headers)
        frame = {"type": "resume", "run": run, "after": len(deltas)} if run else start
        await socket.send(json.dumps(frame))
        left = rng.choice((1, rng.randrange(1, 8), rng.randrange(1, 40)))
        if num_cuts == MAX_CUTS:
            left = NUM_TOKENS
        try:
            while left > 0 or not run:
                told = json.loads(await asyncio.wait_for(socket.recv(), 30))
                run = told.get("run") or run
                if told["type"] == "delta":
                    left -= 1
                    deltas.append(told)
                if told["type"] in ("done", "error"):
                    again = await _read_chat(address, headers, run)
                    return num_cuts, told["type"] == "done" and _is_whole_chat(deltas, again)
        except ConnectionClosed:
            return num_cuts, False
        finally:
            socket.transport.abort()
        num_cuts += 1


async def _read_chat(address: str, headers: dict[str, str], run: str) -> list[dict[str, object]]:
    """Give all deltas of a chat, read on one socket."""
    deltas = []
    async with connect(address, additional_headers=headers) as socket:
        await socket.send(json.dumps({"type": "resume", "run": run}))
        async for frame in socket:
            told = json.loads(frame)
            if told["type"] == "delta":
                deltas.append(told)
            if told["type"] in ("done", "error"):
                break
    return deltas


def _is_whole_chat(deltas: list[dict[str, object]], again: list[dict[str, object]]) -> bool:
    """Tell whether deltas are numbered without a hole, and the same as without a break."""
    numbers = [delta["seq"] for delta in deltas]
    text = "".join(str(delta["text"]) for delta in deltas)
    is_gapless = numbers == list(range(1, len(numbers) + 1))
    is_same = text == "".join(str(delta["text"]) for delta in again)
    return is_gapless and is_same and len(text) == NUM_TOKENS


def _make_reader(lab: Lab, seed: int, num_tokens: int) -> Reader:
    assert lab.home is not None
    body = make_body(make_prompt(seed), num_tokens)
    del body["stream_options"]
    return Reader(lab.home.key(), "/v1/completions", body)


def _judge(lab: Lab, reader: Reader, seed: int, num_tokens: int, port: int, tally: Tally) -> None:
    """Compare what a reader got with what must come, and with the run read without a break."""
    assert lab.home is not None
    numbers = [int(id_of(event)) for event in reader.events]
    is_gapless = numbers == list(range(1, len(numbers) + 1))
    tally.judge(reader.is_finished and is_gapless, "events are missing, or came twice")
    text = spell(foresee(make_prompt(seed), num_tokens))
    is_kept = reader.events == read_whole(lab.home.key(), port, reader.run)
    tally.judge(is_kept and text_of(reader.events) == text, "the text is another one")


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


TRIALS = (
    Trial("P3", "kill -9 of a gateway stops what only it followed", kill_followed_jobs, 2),
    Trial("P3", "kill -9 of a gateway, streams resumed at another", kill_gateway, 4),
    Trial("P4", "cuts of event streams, resumed at either gateway", cut_streams, 800),
    Trial("P4", "cuts of chat sockets, resumed at either gateway", cut_sockets, 200),
)
