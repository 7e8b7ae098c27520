"""The Redis-protocol server is killed, stopped, cut off, emptied and filled up under streams."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable

from inference.protocol.jobs import GenerationJob
from tests.chaos.lab import Lab, is_whole, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import Answer, ask, get, is_right, make_body, make_prompt
from tests.chaos.trial import Size, Trial

REFUSAL_SECONDS = 3.0
BACK_SECONDS = 30.0
NUM_TOKENS = 300


async def kill_broker(tally: Tally, size: Size) -> None:
    """kill -9 and restart after two seconds: streams go on, requests meanwhile are refused."""
    await _trouble(tally, size, lambda lab: lab.broker.stop(signal.SIGKILL), _start, seconds=2)


async def stop_broker(tally: Tally, size: Size) -> None:
    """SIGTERM and restart: the same."""
    await _trouble(tally, size, lambda lab: lab.broker.stop(), _start, seconds=2)


async def pause_broker(tally: Tally, size: Size) -> None:
    """SIGSTOP for longer than a lease; for a minute at full length, and then clients are told."""

    def pause(lab: Lab) -> None:
        lab.broker.send_signal(signal.SIGSTOP)

    def go_on(lab: Lab) -> None:
        lab.broker.send_signal(signal.SIGCONT)

    await _trouble(tally, size, pause, go_on, seconds=size.seconds(12, 60))


async def cut_all_links(tally: Tally, size: Size) -> None:
    """Each part's connections swallow all bytes and stay open; new ones work after a while."""

    def cut(lab: Lab) -> None:
        assert lab.link is not None
        assert lab.link.drop(refuses=True) > 10

    def mend(lab: Lab) -> None:
        assert lab.link is not None
        lab.link.mend()

    await _trouble(tally, size, cut, mend, seconds=size.seconds(8, 30), is_linked=True)


async def drop_connections(tally: Tally, size: Size) -> None:
    """Half-open: the connections of all parts are dead, and nobody is told; new ones work."""
    async with open_lab(is_linked=True) as lab:
        port = lab.start_gateways(1)[0].port
        for number in range(size.rounds):
            jobs = await lab.run_jobs(8, num_tokens=NUM_TOKENS)
            assert lab.link is not None
            tally.strike(lab.link.drop(refuses=False))
            await _judge_recovery(lab, port, number, jobs, tally)


async def kill_connections(tally: Tally, size: Size) -> None:
    """CLIENT KILL of every connection, subscribers too."""
    async with open_lab() as lab:
        port = lab.start_gateways(1)[0].port
        for number in range(size.rounds):
            jobs = await lab.run_jobs(8, num_tokens=NUM_TOKENS)
            for kind in ("normal", "pubsub"):
                tally.strike(lab.redis.client_kill_filter(_type=kind, skipme=True))
            await _judge_recovery(lab, port, number, jobs, tally)


async def fill_broker(tally: Tally, size: Size) -> None:
    """maxmemory reached: requests are refused, streams wait, and go on when there is room."""

    def fill(lab: Lab) -> None:
        lab.redis.config_set("maxmemory", 1 << 20)

    def make_room(lab: Lab) -> None:
        lab.redis.config_set("maxmemory", 0)

    await _trouble(tally, size, fill, make_room, seconds=4)


async def empty_broker(tally: Tally, size: Size) -> None:
    """FLUSHALL: open requests end as worth another try, and service is back by itself."""
    async with open_lab() as lab:
        port = lab.start_gateways(1)[0].port
        assert lab.home is not None
        for number in range(size.rounds):
            body = make_body(make_prompt(number), 3000)
            asked = [asyncio.create_task(ask(port, lab.home.key(), body)) for _ in range(16)]
            await asyncio.sleep(2)
            tally.strike(sum(not one.done() for one in asked))
            lab.redis.flushall()
            for answer in await asyncio.gather(*asked):
                is_told = answer.is_retryable and answer.seconds < BACK_SECONDS
                tally.judge(is_told, f"an open request ended with {answer.code or answer.status}")
            await _judge_service(lab, port, number, tally)
            states = {status.state for status in lab.client.registry.list()}
            tally.judge(states == {"ready"}, f"replicas are {states}")


async def _trouble(
    tally: Tally,
    size: Size,
    begin: Callable[[Lab], None],
    end: Callable[[Lab], None],
    *,
    seconds: float,
    is_linked: bool = False,
) -> None:
    """Make trouble under streams: what is asked meanwhile is refused soon, and all goes on."""
    async with open_lab(is_linked=is_linked) as lab:
        port = lab.start_gateways(1)[0].port
        for number in range(size.rounds):
            usual = await _ask_little(lab, port, number)
            jobs = await lab.run_jobs(16, num_tokens=NUM_TOKENS)
            tally.strike(len(jobs) - len(lab.wait_for_ends(jobs, seconds=0.1)))
            began = time.monotonic()
            await asyncio.to_thread(begin, lab)
            await _judge_refusals(lab, port, REFUSAL_SECONDS + usual.seconds, tally)
            await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))
            await asyncio.to_thread(end, lab)
            await _judge_recovery(lab, port, number, jobs, tally)


async def _ask_little(lab: Lab, port: int, number: int) -> Answer:
    assert lab.home is not None
    return await ask(port, lab.home.key(), make_body(make_prompt(number), 5))


async def _judge_refusals(lab: Lab, port: int, seconds: float, tally: Tally) -> None:
    """Who asks meanwhile hears so in time, which is longer where all takes longer."""
    for answer in await asyncio.gather(*(_ask_little(lab, port, one) for one in range(4))):
        is_refused = answer.status == 503 and answer.retry_after > 0
        tally.judge(
            is_refused and answer.seconds < seconds,
            f"{answer.status} after {answer.seconds:.1f} s while the broker was away",
        )


async def _judge_recovery(
    lab: Lab, port: int, number: int, jobs: list[GenerationJob], tally: Tally
) -> None:
    """All jobs end whole within half a minute, and new ones are served."""
    began = time.monotonic()
    served = asyncio.create_task(_judge_service(lab, port, number, tally))
    found = await asyncio.to_thread(lab.wait_for_ends, jobs, BACK_SECONDS)
    for job in jobs:
        events = found.get(job.id)
        broken = "a job did not end in time" if events is None else "a job did not end whole"
        tally.judge(is_whole(job, events), broken)
    await served
    tally.judge(time.monotonic() - began < BACK_SECONDS, "it took longer than half a minute")
    await asyncio.to_thread(lab.wait_until_ready)


async def _judge_service(lab: Lab, port: int, number: int, tally: Tally) -> None:
    """A client that comes back as it is told is served right within half a minute."""
    assert lab.home is not None
    prompt, ends = make_prompt(1000 + number), time.monotonic() + BACK_SECONDS
    answer = Answer()
    while time.monotonic() < ends:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.1, ends - time.monotonic())):
                answer = await ask(port, lab.home.key(), make_body(prompt, 40))
        if not answer.is_retryable:
            break
        await asyncio.sleep(min(answer.retry_after, 2))
    tally.judge(is_right(answer, prompt, 40), f"no service: {answer.code or answer.status}")
    while (health := await get(port, "/health")).status != 200 and time.monotonic() < ends:
        await asyncio.sleep(0.2)
    tally.judge(health.status == 200, f"/health says {health.status}")


def _start(lab: Lab) -> None:
    lab.broker.start()


TRIALS = (
    Trial("P5", "kill -9 of the Redis-protocol server", kill_broker, 3),
    Trial("P5", "restart of the Redis-protocol server", stop_broker, 1),
    Trial("P5", "the Redis-protocol server stopped for 12 s (60 s)", pause_broker, 1),
    Trial("P5", "all links to it swallow bytes for 8 s (30 s)", cut_all_links, 1),
    Trial("P5", "half-open: old links dead, new ones work", drop_connections, 2),
    Trial("P5", "CLIENT KILL of all connections", kill_connections, 3),
    Trial("P5", "maxmemory reached", fill_broker, 2),
    Trial("P6", "FLUSHALL under streams", empty_broker, 2),
)
