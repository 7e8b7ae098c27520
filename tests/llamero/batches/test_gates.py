"""Requests of batches run where nobody misses the room, and make room at once."""

import asyncio

import pytest

from inference.relay.gateway import SpareView
from llamero import dispatch
from llamero.batches.running import gates
from llamero.batches.running.gates import Gate, room_for


@pytest.mark.parametrize(
    ("slots", "free", "waiting", "running", "room"),
    [
        (4, 4, 0, 0, 3),
        (4, 1, 0, 3, 0),
        (4, 2, 0, 2, 1),
        (1, 1, 0, 0, 1),
        (1, 0, 0, 1, 0),
        # Beside others: half of what is free.
        (8, 6, 0, 0, 3),
        (8, 4, 0, 2, 2),
        (4, 1, 0, 0, 0),
        # Two have begun, and will take slots.
        (4, 4, 0, 2, 1),
        # Others wait.
        (4, 4, 1, 0, 0),
        # Nothing serves: one wakes it.
        (0, 0, 0, 0, 1),
        (0, 0, 0, 1, 0),
    ],
)
def test_room_is_what_nobody_misses(
    slots: int, free: int, waiting: int, running: int, room: int
) -> None:
    assert room_for(SpareView(slots, free, waiting), running) == room


class Slots:
    """Slots of a deployment, others' jobs that run there, and those that wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.num_slots, self.num_others, self.num_waiting = 4, 0, 0
        self.begun: list[int] = []
        self.stopped: list[int] = []
        self.running: set[int] = set()
        self.goes_on = asyncio.Event()
        monkeypatch.setattr(dispatch, "get_dispatcher", lambda: self)
        monkeypatch.setattr(gates, "LOOK_SECONDS", 0.001)
        monkeypatch.setattr(gates, "SETTLE_SECONDS", 0)

    async def spare(self, deployment: str) -> SpareView:
        free = self.num_slots - self.num_others - len(self.running)
        return SpareView(self.num_slots, max(0, free), self.num_waiting)

    async def work(self, number: int) -> int:
        self.begun.append(number)
        self.running.add(number)
        try:
            await self.goes_on.wait()
            return number
        except asyncio.CancelledError:
            self.stopped.append(number)
            raise
        finally:
            self.running.discard(number)

    async def until(self, count: int) -> None:
        while len(self.running) != count:
            await asyncio.sleep(0.001)


async def test_who_began_last_makes_room_and_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slots = Slots(monkeypatch)
    gate = Gate("smol", 16)
    tasks = [
        asyncio.create_task(gate.run("key:1", lambda number=number: slots.work(number)))
        for number in range(5)
    ]
    await slots.until(3)
    assert slots.begun == [0, 1, 2]
    slots.num_others, slots.num_waiting = 1, 1
    await slots.until(2)
    assert slots.stopped == [2]
    slots.num_others, slots.num_waiting = 2, 0
    await asyncio.sleep(0.01)
    assert slots.running == {0, 1}
    slots.num_others = 0
    await slots.until(3)
    slots.goes_on.set()
    assert await asyncio.gather(*tasks) == [0, 1, 2, 3, 4]
    assert sorted(slots.begun) == [0, 1, 2, 2, 3, 4]


async def test_owners_share(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = Slots(monkeypatch)
    gate = Gate("smol", 16)
    tasks = [
        asyncio.create_task(gate.run(f"key:{number // 9}", lambda n=number: slots.work(n)))
        for number in range(10)
    ]
    await slots.until(3)
    assert 9 in slots.running
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert slots.running == set()


async def test_what_is_cancelled_from_outside_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = Slots(monkeypatch)
    gate = Gate("smol", 16)
    task = asyncio.create_task(gate.run("key:1", lambda: slots.work(1)))
    await slots.until(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert slots.stopped == [1]
    gate.pause()
    waiting = asyncio.create_task(gate.run("key:1", lambda: slots.work(2)))
    await asyncio.sleep(0.01)
    assert slots.begun == [1]
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
