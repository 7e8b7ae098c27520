"""Ten times as many requests as can be served: some are, in time, and the rest hear so at once."""

import asyncio
import itertools
import math
import time

from tests.chaos.lab import make_specs, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import Answer, ask, get, is_right, make_body, make_prompt
from tests.chaos.trial import Size, Trial

NUM_SLOTS = 4  # of each of two replicas
NUM_TOKENS = 30
MAX_QUEUE, MAX_QUEUE_PER_KEY = 24, 16
FACTOR = 10
REFUSAL_SECONDS = 0.1
KEPT_SHARE = 0.9
MEASURE_SECONDS = 8.0


async def overload(tally: Tally, size: Size) -> None:
    """One key asks for ten times the capacity, another for little; a round is a second."""
    specs = make_specs(file="fake:?step_ms=60", num_slots=NUM_SLOTS)
    async with open_lab(*specs) as lab:
        bounds = {"max_queue": MAX_QUEUE, "max_queue_per_key": MAX_QUEUE_PER_KEY}
        port = lab.start_gateways(1, **bounds)[0].port
        assert lab.home is not None
        greedy, modest = lab.home.key(), lab.home.key("other-key")
        capacity = await _measure_capacity(port, greedy)
        seconds = float(size.rounds)
        flood = asyncio.create_task(_flood(port, greedy, FACTOR * capacity, seconds))
        looks = asyncio.create_task(_look(port, seconds))
        trickle = asyncio.create_task(_flood(port, modest, capacity / 8, seconds, start=10**6))
        answers, others, usual = await flood, await trickle, await looks
    served = [one for one in answers if one[1].is_finished]
    refused = [answer for _, answer in answers if not answer.is_finished]
    tally.strike(len(refused))
    for number, answer in (*served, *others):
        is_kept = is_right(answer, make_prompt(number), NUM_TOKENS)
        tally.judge(is_kept, f"an accepted request got {answer.code or answer.status}")
    _judge_refusals(refused, capacity, usual, tally)
    in_time = [one for one in (*served, *others) if one[1].ended_at < _end_of(answers, seconds)]
    share = len(in_time) / seconds / capacity
    tally.judge(share >= KEPT_SHARE, f"goodput fell to {share:.0%} of the capacity")
    # A key waits for its own queue alone, and for those that are served before it.
    bound = 2 * MAX_QUEUE / capacity + 1
    waits = sorted(answer.first_at - answer.began_at for _, answer in (*served, *others))
    late = waits[int(0.99 * len(waits))]
    tally.judge(late <= bound, f"the 99th first token of 100 came after {late:.1f} s")


def _judge_refusals(refused: list[Answer], capacity: float, usual: float, tally: Tally) -> None:
    """Each says truly when there will be room; nearly all come at once.

    That is a tenth of a second more than what costs next to nothing: a machine may be busy.
    """
    # There is room for a key's next request when its first one is taken: soon, and at the latest
    # when all that wait are.
    longest = math.ceil(2 * MAX_QUEUE / capacity)
    for answer in refused:
        is_told = answer.status in (429, 503) and 1 <= answer.retry_after <= max(1, longest)
        tally.judge(is_told, f"{answer.status}, Retry-After: {answer.retry_after}")
    slow = _ninety_fifth([answer.seconds for answer in refused])
    is_quick = slow < REFUSAL_SECONDS + usual
    tally.judge(is_quick, f"the 95th refusal of 100 took {1000 * slow:.0f} ms")


async def _look(port: int, seconds: float) -> float:
    """Look at /health all the while; gives how long nearly all looks took at most."""
    ends, times = time.monotonic() + seconds, []
    while time.monotonic() < ends:
        times.append((await get(port, "/health")).seconds)
        await asyncio.sleep(0.2)
    return _ninety_fifth(times)


def _ninety_fifth(times: list[float]) -> float:
    return sorted(times)[int(0.95 * len(times))] if times else 0.0


async def _measure_capacity(port: int, key: str) -> float:
    """Give the requests per second that as many clients get as there are slots, and two more."""
    numbers, ends = itertools.count(5 * 10**6), time.monotonic() + MEASURE_SECONDS
    num_done = 0

    async def client() -> None:
        nonlocal num_done
        while time.monotonic() < ends:
            await ask(port, key, make_body(make_prompt(next(numbers)), NUM_TOKENS))
            num_done += time.monotonic() < ends

    await asyncio.gather(*(client() for _ in range(2 * NUM_SLOTS + 2)))
    return num_done / MEASURE_SECONDS


async def _flood(
    port: int, key: str, rate: float, seconds: float, start: int = 0
) -> list[tuple[int, Answer]]:
    """Ask at a steady rate, however slowly answers come."""
    began, asked = time.monotonic(), []

    async def one(number: int) -> tuple[int, Answer]:
        return number, await ask(port, key, make_body(make_prompt(number), NUM_TOKENS))

    for number in itertools.count(start):
        due = began + (number - start) / rate
        if due > began + seconds:
            break
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asked.append(asyncio.create_task(one(number)))
    return list(await asyncio.gather(*asked))


def _end_of(answers: list[tuple[int, Answer]], seconds: float) -> float:
    return min(answer.began_at for _, answer in answers) + seconds


TRIALS = (Trial("P8", "ten times overload by one key, beside a modest one", overload, 60),)
