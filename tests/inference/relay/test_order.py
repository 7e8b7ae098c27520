"""The order of the real scripts is that of a naive model, and nobody in it starves."""

import random
from dataclasses import dataclass, field

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Done, FinishReason
from inference.protocol.jobs import IDLE_PRIORITY, GenerationJob
from inference.relay.keys import job_key
from inference.relay.reaper import ReplicaEnd, reap
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import NOT_YET, NotYet, TakenJob, WaitingSet
from inference.relay.writer import EventWriter
from tests.inference.relay.fakes import make_job, make_status

LOWER_TURN = 8
REPLICAS = ("chat-1", "chat-2")
FOR_EVER = 1e9


@dataclass
class Entry:
    """A waiting job of the model."""

    id: str
    owner: str
    priority: int
    cost: int
    floor: float
    arrival: int
    is_back: bool = False
    held_for: str = ""


@dataclass
class NaiveOrder:
    """What ``order.lua`` promises, by looking at every job each time."""

    waiting: list[Entry] = field(default_factory=list)
    used: dict[tuple[int, str], float] = field(default_factory=dict)
    virtual: dict[int, float] = field(default_factory=dict)
    charged: dict[str, Entry] = field(default_factory=dict)
    arrivals: dict[str, int] = field(default_factory=dict)
    turn: int = 0

    def add(self, job: GenerationJob, held_for: str = "") -> None:
        arrival = self.arrivals[job.id] = len(self.arrivals)
        floor = self.virtual.get(job.priority, 0)
        entry = Entry(job.id, job.owner, job.priority, job.cost, floor, arrival)
        entry.held_for = held_for
        self.waiting.append(entry)

    def remove(self, job: str) -> None:
        self.waiting = [entry for entry in self.waiting if entry.id != job]
        self._forget_if_empty()

    def starts(self) -> dict[str, float]:
        found: dict[str, float] = {}
        use = dict(self.used)
        for entry in sorted(self.waiting, key=lambda entry: entry.arrival):
            if entry.is_back:
                found[entry.id] = 0
                continue
            share = (entry.priority, entry.owner)
            found[entry.id] = max(entry.floor, use.get(share, 0))
            use[share] = found[entry.id] + entry.cost
        return found

    def ranking(self) -> list[str]:
        starts = self.starts()
        best_first = sorted(self.waiting, key=lambda e: (-e.priority, starts[e.id], e.id))
        return [entry.id for entry in best_first]

    def take(self, replica: str) -> str | NotYet | None:
        if not self.waiting:
            return None
        ranking = self.ranking()
        entries = {entry.id: entry for entry in self.waiting}
        best = entries[ranking[0]]
        lower = [entry for entry in self.waiting if entry.priority < best.priority]
        if lower and self.turn + 1 == LOWER_TURN:
            self.turn = 0
            chosen = min(lower, key=lambda entry: entry.arrival)
        else:
            mine = [
                entries[job]
                for job in ranking
                if entries[job].priority == best.priority and entries[job].held_for in ("", replica)
            ]
            if not mine:
                return NOT_YET
            chosen = mine[0]
            self.turn += bool(lower)
        if not chosen.is_back:
            share = (chosen.priority, chosen.owner)
            start = max(chosen.floor, self.used.get(share, 0))
            self.virtual[chosen.priority] = max(self.virtual.get(chosen.priority, 0), start)
            self.used[share] = start + chosen.cost
            self.charged[chosen.id] = chosen
        self.remove(chosen.id)
        return chosen.id

    def settle(self, job: str, used: int) -> None:
        entry = self.charged.pop(job, None)
        if entry is not None:
            self.used[entry.priority, entry.owner] -= entry.cost - used

    def put_back(self, job: GenerationJob) -> None:
        arrival = self.arrivals[job.id]
        self.waiting.append(Entry(job.id, job.owner, job.priority, 0, 0, arrival, is_back=True))

    def _forget_if_empty(self) -> None:
        if not self.waiting:
            self.used.clear()
            self.virtual.clear()
            self.charged.clear()
            self.turn = 0


@pytest.fixture
def jobs(client):
    ReplicaRegistry(client).beat(make_status())
    return WaitingSet(client, "chat")


async def hold(client, job: GenerationJob) -> str:
    """Have a job wait for ever for the replica that is warm for it; gives that one, if any."""
    home, seconds = client.hmget(job_key(job.id), "home", "hold")
    if not float(seconds or 0):
        return ""
    client.hset(job_key(job.id), "hold", FOR_EVER)
    return home.decode()


def finish(client, taken, num_prompt: int, num_completion: int) -> None:
    end = Done(FinishReason.EOS, num_prompt, 0, num_completion)
    row = (taken.job.id, taken.job.attempt, taken.num_events + 1, end)
    assert EventWriter(client).write([row]) == ()


@pytest.mark.parametrize("seed", range(6))
async def test_random_operations_agree_with_the_model(client, gateway, jobs, seed):
    rng = random.Random(seed)
    model = NaiveOrder()
    running = {}
    num_held = 0
    for step in range(400):
        if step % 40 == 0:
            beat_all(client)
        roll = rng.random()
        if roll < 0.45:
            owner, priority = f"owner{rng.randrange(4)}", rng.choice([0, 0, 0, 1, -2])
            prompt = (rng.randrange(9),) * rng.choice([4, 32, 64])
            max_tokens = rng.randrange(1, 900)
            job = make_job(
                owner, priority=priority, max_tokens=max_tokens, prompt_tokens=prompt, salt="one"
            )
            await gateway.submit(job, max_queue=9999)
            held_for = await hold(client, job)
            num_held += bool(held_for)
            model.add(job, held_for)
        elif roll < 0.75:
            replica = rng.choice(REPLICAS)
            taken, expected = jobs.take(replica), model.take(replica)
            if isinstance(taken, TakenJob):
                assert taken.job.id == expected
                running[expected] = (replica, taken)
            else:
                assert taken is expected
        elif roll < 0.88 and running:
            job = rng.choice(sorted(running))
            _, taken = running.pop(job)
            num_completion = rng.randrange(taken.job.max_tokens + 1)
            finish(client, taken, len(taken.job.prompt_tokens), num_completion)
            model.settle(job, len(taken.job.prompt_tokens) + num_completion)
        elif roll < 0.95 and model.waiting:
            entry = rng.choice(model.waiting)
            await gateway.cancel([entry.id], is_abandoned=True)
            if entry.is_back:
                model.settle(entry.id, 0)
            model.remove(entry.id)
        elif running:
            _lose_replica(client, model, running, rng.choice(REPLICAS))
        found = client.zrange("lm:wait:chat", 0, -1)
        assert [job.decode() for job in found] == model.ranking()
    assert num_held > 4


def beat_all(client) -> None:
    for replica in REPLICAS:
        ReplicaRegistry(client).beat(make_status(replica))


def _lose_replica(client, model, running, replica: str) -> None:
    reap(client, replica, ReplicaEnd.ORDERLY)
    beat_all(client)
    for job in [job for job, (where, _) in running.items() if where == replica]:
        model.put_back(running.pop(job)[1].job)


@pytest.mark.parametrize("seed", range(4))
async def test_a_lower_class_is_never_starved(client, gateway, jobs, seed):
    """However many better jobs keep coming, n older ones of lower classes bound the wait."""
    rng = random.Random(seed)
    num_older: dict[str, int] = {}
    taken_at: dict[str, int] = {}
    came_at: dict[str, int] = {}
    for take in range(250):
        if take % 10 == 0:
            beat_all(client)
        for _ in range(2):
            await gateway.submit(make_job(f"top{rng.randrange(9)}", priority=5), max_queue=9999)
        if rng.random() < 0.05:
            job = make_job(f"low{rng.randrange(3)}", priority=rng.choice([0, 1, -7]))
            num_older[job.id] = len(num_older) - len(taken_at)
            came_at[job.id] = take
            await gateway.submit(job, max_queue=9999)
            # Not even one that others are warm for.
            client.hset(job_key(job.id), mapping={"home": "chat-2", "hold": FOR_EVER})
        taken = jobs.take("chat-1")
        if taken.job.id in came_at:
            taken_at[taken.job.id] = take
    waits = {job: taken_at.get(job, 250) - came_at[job] for job in came_at}
    assert len(taken_at) > 5
    assert all(waits[job] <= LOWER_TURN * (num_older[job] + 1) for job in came_at)


async def test_a_job_that_used_little_does_not_punish_its_owner(client, gateway, jobs):
    await gateway.submit(make_job("modest", max_tokens=8192), max_queue=99)
    taken = jobs.take("chat-1")
    for _ in range(10):
        await gateway.submit(make_job("other", max_tokens=96), max_queue=99)
    await gateway.submit(make_job("modest", max_tokens=8192), max_queue=99)
    first = jobs.take("chat-1")  # the backlog began empty: the first two are equal
    if first.job.owner == "other":
        first = jobs.take("chat-1")
    assert first.job.owner == "modest"
    await gateway.submit(make_job("modest", max_tokens=8192), max_queue=99)
    assert (await rank_of(client, "modest")) == len(jobs) - 1
    finish(client, first, 4, 5)
    assert (await rank_of(client, "modest")) <= 1
    finish(client, taken, 4, 5)


async def rank_of(client, owner):
    """Give the place of an owner's only waiting job."""
    [job] = client.lrange(f"lm:line:chat:0:{owner}", 0, -1)
    return client.zrank("lm:wait:chat", job)


async def test_a_job_that_used_more_than_was_known_costs_it(client, gateway, jobs):
    await gateway.submit(make_job("open", max_tokens=None), max_queue=99)
    for _ in range(10):
        await gateway.submit(make_job("other", max_tokens=96), max_queue=99)
        await gateway.submit(make_job("open", max_tokens=96), max_queue=99)
    taken = [jobs.take("chat-1") for _ in range(3)]
    endless = next(t for t in taken if t.job.max_tokens is None)
    finish(client, endless, 4, 5000)
    assert [jobs.take("chat-1").job.owner for _ in range(5)] == ["other"] * 5


async def test_the_expected_wait_is_measured(client, gateway, jobs):
    assert (await gateway.submit(make_job(), max_queue=99)).wait_seconds is None
    for _ in range(9):
        await gateway.submit(make_job(), max_queue=99)
    for _ in range(5):
        jobs.take("chat-1")
    admission = await gateway.submit(make_job(), max_queue=99)
    assert admission.num_ahead == 5
    assert admission.wait_seconds is not None
    [view] = await gateway.poll([(jobs.take("chat-1").job.id, 1)])
    assert (view.state, view.wait_seconds) == ("running", None)


async def test_one_owners_queue_is_bounded_below_the_deployments(client, gateway, jobs):
    for _ in range(2 + 3):
        await gateway.submit(make_job("hog"), max_queue=99, max_owner_queue=3)
    for _ in range(2):
        jobs.take("chat-1")
    with pytest.raises(EngineError) as caught:
        await gateway.submit(make_job("hog"), max_queue=99, max_owner_queue=3)
    assert caught.value.code is ErrorCode.KEY_QUEUE_FULL
    assert caught.value.retry_after is not None
    await gateway.submit(make_job("guest"), max_queue=99, max_owner_queue=3)


async def test_the_lowest_class_has_no_turn_before_any_other(client, gateway, jobs):
    for _ in range(2):
        await gateway.submit(make_job("idle", priority=IDLE_PRIORITY), max_queue=999)
    await gateway.submit(make_job("low", priority=IDLE_PRIORITY + 1), max_queue=999)
    for _ in range(4 * LOWER_TURN):
        await gateway.submit(make_job("top"), max_queue=999)
    view = await gateway.spare("chat")
    assert (view.num_slots, view.num_waiting) == (2, 4 * LOWER_TURN + 1)
    owners = [jobs.take("chat-1").job.owner for _ in range(len(jobs))]
    assert owners.index("low") < LOWER_TURN
    assert owners[-2:] == ["idle", "idle"]
    assert (await gateway.spare("chat")).num_waiting == 0
