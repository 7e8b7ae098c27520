"""Replicas and their node agents are killed, stopped and crashed under their jobs."""

import asyncio
import os
import random
import signal
import time

import psutil

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Failed, FinishReason
from inference.protocol.jobs import GenerationJob
from tests.chaos.lab import NAMES, NUM_SLOTS, Lab, is_whole, num_starts, open_lab
from tests.chaos.tally import Tally
from tests.chaos.trial import Size, Trial
from tests.inference.worker.replicas import make_job

END_SECONDS = 10.0


async def kill_replicas(tally: Tally, size: Size) -> None:
    """kill -9 under 32 running and 32 waiting jobs: all end whole within ten seconds."""
    rng = random.Random(1)
    async with open_lab() as lab:
        for _ in range(size.rounds):
            jobs = await lab.run_jobs(4 * NUM_SLOTS, num_tokens=200)
            lab.kill_replica(rng.choice(NAMES))
            judge_jobs(lab, jobs, tally, seconds=END_SECONDS)
            lab.wait_until_ready()


async def kill_same_jobs_again(tally: Tally, size: Size) -> None:
    """The same streams lose all replicas, again and again."""
    async with open_lab() as lab:
        jobs = await lab.run_jobs(8, num_tokens=800)
        for _ in range(size.rounds):
            counts = {job.id: len(lab.client.events(job)) for job in jobs}

            def has_moved(job: GenerationJob, counts: dict[str, int] = counts) -> bool:
                return lab.has_ended(job) or len(lab.client.events(job)) > counts[job.id] + 5

            lab.wait(lambda has_moved=has_moved: all(map(has_moved, jobs)), seconds=20)
            for name in NAMES:
                lab.kill_replica(name)
            lab.wait_until_ready()
        found = lab.wait_for_ends(jobs)
        for job in jobs:
            tally.judge(is_whole(job, found.get(job.id)), "a job did not end whole")
            tally.strike(num_starts(found.get(job.id)) > min(size.rounds, 2))


async def pause_replica(tally: Tally, size: Size) -> None:
    """A replica that is stopped for longer than its lease writes nothing when it wakes up."""
    async with open_lab() as lab:
        for _ in range(size.rounds):
            jobs = await lab.run_jobs(8, num_tokens=1500)
            pid = lab.kill_replica("chat-1", signal.SIGSTOP)
            lab.wait(lambda: not lab.redis.exists("lm:rep:chat-1"), seconds=10)
            await asyncio.sleep(2)
            os.kill(pid, signal.SIGCONT)
            judge_jobs(lab, jobs, tally)
            lab.wait_until_ready()


async def kill_node_agent(tally: Tally, size: Size) -> None:
    """kill -9 of the agent ends its replicas too; another agent goes on with their jobs."""
    async with open_lab() as lab:
        for _ in range(size.rounds):
            jobs = await lab.run_jobs(8, num_tokens=400)
            left = psutil.Process(lab.nodes[-1].process.pid).children()
            lab.nodes[-1].process.kill()
            _, alive = psutil.wait_procs(left, timeout=5)
            tally.judge(not alive, "a replica outlived its agent")
            lab.nodes.append(lab.start_node())
            judge_jobs(lab, jobs, tally, seconds=15)
            lab.wait_until_ready()


async def crash_by_request(tally: Tally, size: Size) -> None:
    """A request that crashes engines costs two of them, and is refused; its neighbours end well."""
    async with open_lab() as lab:
        for number in range(size.rounds):
            jobs = await lab.run_jobs(12, num_tokens=300)
            pids = {name: lab.status(name).pid for name in NAMES}
            poison = make_job(prompt_tokens=(70, 5, 100 + number))
            await lab.client.submit(poison)
            found = lab.wait_for_ends([*jobs, poison])
            end = found[poison.id][-1] if poison.id in found else None
            is_refused = isinstance(end, Failed) and end.code == ErrorCode.REQUEST_CRASHED_ENGINE
            tally.judge(is_refused, "the request that crashes engines was not refused")
            for job in jobs:
                tally.judge(is_whole(job, found.get(job.id)), "a neighbour did not end whole")
            lab.wait_until_ready()
            tally.strike(sum(lab.status(name).pid != pid for name, pid in pids.items()))


async def hold_deadlines(tally: Tally, size: Size) -> None:
    """Waiting, running, orphaned: no job is without an end one second after its deadline."""
    rng = random.Random(9)
    async with open_lab() as lab:
        for _ in range(size.rounds):
            limits = [rng.uniform(0.5, 6) for _ in range(6 * NUM_SLOTS)]
            jobs = [make_job(max_tokens=4000, deadline=time.time() + one) for one in limits]
            await lab.client.submit(*jobs)
            await asyncio.sleep(2)
            lab.kill_replica(rng.choice(NAMES))
            await asyncio.to_thread(_judge_deadlines, lab, jobs, tally)
            lab.wait_until_ready()


def _judge_deadlines(lab: Lab, jobs: list[GenerationJob], tally: Tally) -> None:
    """Look at all jobs again and again, each until its deadline and a second."""
    left = list(jobs)
    while left:
        due = [job for job in left if time.time() > job.deadline + 1]
        ended = lab.wait_for_ends(due, seconds=0.2) if due else {}
        for job in due:
            end = ended[job.id][-1] if job.id in ended else None
            is_late = isinstance(end, Failed) and end.code == ErrorCode.DEADLINE_EXCEEDED
            is_cut = isinstance(end, Done) and end.finish_reason is FinishReason.LENGTH
            tally.judge(is_late or is_cut, f"a second after its deadline a job has {end!r:.60}")
            tally.strike(num_starts(ended.get(job.id)) > 1)
        left = [job for job in left if job not in due]
        time.sleep(0.05)


def judge_jobs(lab: Lab, jobs: list[GenerationJob], tally: Tally, *, seconds: float = 60) -> None:
    """Wait for jobs and judge each; those that lost a replica were struck."""
    found = lab.wait_for_ends(jobs, seconds)
    for job in jobs:
        events = found.get(job.id)
        broken = "a job did not end in time" if events is None else "a job did not end whole"
        tally.judge(is_whole(job, events), broken)
        tally.strike(num_starts(events) > 1)


TRIALS = (
    Trial("P1", "kill -9 of a replica under 32 streams, 32 waiting", kill_replicas, 20),
    Trial("P1", "all replicas killed under the same streams", kill_same_jobs_again, 3),
    Trial("P1", "a stopped replica wakes up and is fenced", pause_replica, 2),
    Trial("P2", "kill -9 of the node agent", kill_node_agent, 4),
    Trial("P9", "no job outlives its deadline by a second", hold_deadlines, 3),
    Trial("P21", "a request that crashes engines", crash_by_request, 3),
)
