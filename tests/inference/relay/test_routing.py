"""Jobs go where the beginning of their prompt is warm, within bounds of load and of time."""

import random
import time

import pytest

from inference.relay import keys
from inference.relay.reaper import ReplicaEnd, reap, sweep
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import NOT_YET, WaitingSet
from inference.relay.writer import EventWriter
from tests.inference.relay.fakes import DONE, make_job, make_status

NUM_SLOTS = 4
NAMES = ("chat-1", "chat-2")
PATIENCE = 100.0
_rng = random.Random(4)


@pytest.fixture
def jobs(client):
    for name in NAMES:
        ReplicaRegistry(client).beat(make_status(name, num_slots=NUM_SLOTS))
    return WaitingSet(client, "chat")


def make_prompt(num_tokens: int, beginning: tuple[int, ...] = ()) -> tuple[int, ...]:
    return (*beginning, *(_rng.randrange(50_000) for _ in range(num_tokens)))


async def submit(gateway, prompt, **changes):
    job = make_job(prompt_tokens=prompt, **changes)
    return job, await gateway.submit(job, max_queue=999)


async def warm_up(client, gateway, jobs, prompt):
    """Have a prompt run to its end where it is sent; gives that replica and the other one."""
    job, admission = await submit(gateway, prompt)
    assert jobs.take(admission.ticket_for).job == job
    EventWriter(client).write([(job.id, 1, 1, DONE)])
    assert jobs.take(admission.ticket_for, finished=job.id) is None
    home = admission.ticket_for
    return home, next(name for name in NAMES if name != home)


def make_patient(client, job):
    """Have a job be left to its replica for longer than any test takes."""
    assert float(client.hget(keys.job_key(job.id), "hold")) > 0
    client.hset(keys.job_key(job.id), "hold", PATIENCE)


async def fill(gateway, jobs, replica):
    """Have every slot of a replica run something."""
    running = []
    while len(running) < NUM_SLOTS:
        await submit(gateway, (1,))
        running.append(jobs.take(replica).job.id)
    return running


async def test_a_conversation_comes_back_to_the_replica_that_knows_it(client, gateway, jobs):
    conversations = [make_prompt(200) for _ in range(6)]
    homes = [(await warm_up(client, gateway, jobs, prompt))[0] for prompt in conversations]
    for prompt, home in zip(conversations, homes, strict=True):
        _, admission = await submit(gateway, make_prompt(60, prompt))
        assert admission.ticket_for == home
        assert jobs.take(home) is not NOT_YET
        client.delete(keys.PREFIXES["AWAKE"] + home)


async def test_cold_jobs_are_spread(gateway, jobs):
    tickets = [(await submit(gateway, make_prompt(100)))[1].ticket_for for _ in range(8)]
    assert sorted(tickets) == ["chat-1"] * 4 + ["chat-2"] * 4
    assert (await submit(gateway, make_prompt(100)))[1].ticket_for == ""


async def test_a_replica_may_be_busier_by_the_share_that_is_warm(client, gateway, jobs):
    prompt = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, prompt)
    tickets = [(await submit(gateway, prompt))[1].ticket_for for _ in range(NUM_SLOTS + 1)]
    assert tickets == [home] * NUM_SLOTS + [other]


async def test_half_a_prompt_is_worth_half_the_slots(client, gateway, jobs):
    beginning = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, beginning)
    prompts = [make_prompt(160, beginning) for _ in range(3)]
    tickets = [(await submit(gateway, prompt))[1].ticket_for for prompt in prompts]
    assert tickets[:2] == [home, home]
    assert (await submit(gateway, make_prompt(320)))[1].ticket_for == other


async def test_little_that_is_warm_counts_little(client, gateway, jobs):
    system = make_prompt(32)
    home, other = await warm_up(client, gateway, jobs, make_prompt(10, system))
    await submit(gateway, (1,))
    jobs.take(home)
    _, admission = await submit(gateway, make_prompt(600, system))
    assert admission.ticket_for == other
    assert admission.has_spare


async def test_what_is_warm_for_one_owner_is_cold_for_another(client, gateway, jobs):
    prompt = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, prompt)
    await submit(gateway, (1,))
    jobs.take(home)
    assert (await submit(gateway, prompt, salt="bob"))[1].ticket_for == other
    assert (await submit(gateway, prompt))[1].ticket_for == home


async def test_an_idle_slot_leaves_a_job_to_its_replica_for_a_moment_only(client, gateway, jobs):
    prompt = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, prompt)
    await fill(gateway, jobs, home)
    await fill(gateway, jobs, other)
    job, admission = await submit(gateway, prompt)
    assert admission.ticket_for == ""
    make_patient(client, job)
    assert jobs.take(other) is NOT_YET
    assert jobs.take(other) is NOT_YET
    client.hset(keys.job_key(job.id), "passed", time.time() - PATIENCE)
    assert jobs.take(other).job == job


async def test_a_slot_leaves_it_no_longer_than_computing_it_anew_takes(client, gateway, jobs):
    prompt = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, prompt)
    await fill(gateway, jobs, home)
    await fill(gateway, jobs, other)
    for pace, hold in ((0.0005, 160 * 0.0005), (0.000001, 0.02), (1, 0.25)):
        client.hset(keys.replica_key(home), "pace", pace)
        job, _ = await submit(gateway, prompt)
        assert float(client.hget(keys.job_key(job.id), "hold")) == pytest.approx(hold)


async def test_a_slot_with_other_work_leaves_it_longer_but_not_for_ever(client, gateway, jobs):
    prompt = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, prompt)
    await fill(gateway, jobs, home)
    await fill(gateway, jobs, other)
    warm, _ = await submit(gateway, prompt)
    make_patient(client, warm)
    cold = [(await submit(gateway, make_prompt(20)))[0] for _ in range(2)]
    assert jobs.take(other).job == cold[0]
    client.hset(keys.job_key(warm.id), "passed", time.time() - 4 * PATIENCE)
    assert jobs.take(other).job == cold[1]
    cold.append((await submit(gateway, make_prompt(20)))[0])
    client.hset(keys.job_key(warm.id), "passed", time.time() - 8 * PATIENCE)
    assert jobs.take(other).job == warm


async def test_a_job_of_a_higher_class_is_not_passed_over_for_a_lower_one(client, gateway, jobs):
    prompt = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, prompt)
    await fill(gateway, jobs, home)
    await fill(gateway, jobs, other)
    await submit(gateway, prompt, priority=1)
    await submit(gateway, make_prompt(20))
    assert jobs.take(other) is NOT_YET


async def test_a_job_is_stolen_when_its_replica_dies(client, gateway, jobs):
    prompt = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, prompt)
    job, admission = await submit(gateway, prompt)
    assert admission.ticket_for == home
    client.zrem(keys.PREFIXES["READY"] + "chat", home)
    assert jobs.take(other).job == job


async def test_a_dead_replica_leaves_nothing_behind(client, gateway, jobs):
    prompt = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, prompt)
    await submit(gateway, prompt)
    client.lpush(f"gen.{home}", "a ticket")
    reap(client, home, ReplicaEnd.KILLED)
    assert client.keys(f"*{home}") == []
    assert (await submit(gateway, prompt))[1].ticket_for == other


async def test_a_job_that_comes_back_is_anybodys(client, gateway, jobs):
    prompt = make_prompt(160)
    home, other = await warm_up(client, gateway, jobs, prompt)
    job, _ = await submit(gateway, prompt)
    jobs.take(home)
    reap(client, home, ReplicaEnd.KILLED)
    ReplicaRegistry(client).beat(make_status(home, num_slots=NUM_SLOTS))
    assert jobs.take(other).job.id == job.id


async def test_others_are_woken_when_a_replica_does_not_come(client, gateway, jobs):
    job, admission = await submit(gateway, make_prompt(160))
    [view] = await gateway.poll([(job.id, 1)])
    assert {admission.ticket_for, view.ticket_for} == set(NAMES)
    assert sweep(client).tickets == dict.fromkeys(NAMES, 1)


async def test_what_is_remembered_is_bounded(client, gateway, jobs):
    prompt = make_prompt(160)
    home, _ = await warm_up(client, gateway, jobs, prompt)
    key = keys.PREFIXES["WARM"] + home
    client.zadd(key, {f"16.{number}": number for number in range(9000)})
    await submit(gateway, prompt)
    jobs.take(home)
    assert client.zcard(key) == 8192
    assert 0 < client.ttl(key) <= keys.WARM_SECONDS
