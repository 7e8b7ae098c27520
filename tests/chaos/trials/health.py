"""/health follows what works, within five seconds, and nothing else."""

import asyncio
import os
import signal
import time

from inference.protocol.replicas import ReplicaSpec
from tests.chaos.lab import Lab, make_specs, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import ask, get, is_right, make_body, make_prompt
from tests.chaos.trial import Size, Trial
from tests.inference.worker.replicas import make_job

FLIP_SECONDS = 5.0
BACK_SECONDS = 30.0
HANG_TOKEN = 6


def _make_spec() -> ReplicaSpec:
    return make_specs(file=f"fake:?step_ms=5&hang_on={HANG_TOKEN}", num_slots=8)[0]


async def tell_the_truth(tally: Tally, size: Size) -> None:
    """The only replica is stopped, killed, or its engine stands still; then the broker is away."""
    async with open_lab(_make_spec()) as lab:
        port = lab.start_gateways(1)[0].port
        for _ in range(size.rounds):
            await _judge_back(lab, port, tally)
            pid = lab.kill_replica("chat-1", signal.SIGSTOP)
            await _judge_flip(port, tally, "its replica was stopped")
            os.kill(pid, signal.SIGCONT)
            await _judge_back(lab, port, tally)
            hung = make_job(prompt_tokens=(70, HANG_TOKEN, 70))
            await lab.client.submit(hung)
            await _judge_flip(port, tally, "its engine stood still")
            await lab.client.cancel(hung)
            lab.kill_replica("chat-1")
            await _judge_back(lab, port, tally)
            lab.kill_replica("chat-1")
            await _judge_flip(port, tally, "its replica was killed")
            await _judge_back(lab, port, tally)
            lab.broker.send_signal(signal.SIGSTOP)
            await _judge_flip(port, tally, "the broker stood still")
            lab.broker.send_signal(signal.SIGCONT)
            await _judge_back(lab, port, tally)


async def _judge_flip(port: int, tally: Tally, why: str) -> None:
    """It says 503 within five seconds."""
    began, status = time.monotonic(), 200
    while status == 200 and time.monotonic() - began < 2 * FLIP_SECONDS:
        await asyncio.sleep(0.05)
        status = (await get(port, "/health")).status
    seconds = time.monotonic() - began
    tally.strike(status == 503)
    is_true = status == 503 and seconds <= FLIP_SECONDS
    tally.judge(is_true, f"/health said {status} {seconds:.1f} s after {why}")


async def _judge_back(lab: Lab, port: int, tally: Tally) -> None:
    """It says 200 once a request is served again, and not before."""
    ends, prompt = time.monotonic() + BACK_SECONDS, make_prompt(1)
    while (health := await get(port, "/health")).status != 200 and time.monotonic() < ends:
        await asyncio.sleep(0.1)
    assert lab.home is not None
    answer = await ask(port, lab.home.key(), make_body(prompt, 10))
    is_true = health.status == 200 and is_right(answer, prompt, 10)
    tally.judge(is_true, f"/health said {health.status}, a request got {answer.status}")


TRIALS = (Trial("P20", "/health follows stopped, hung and killed replicas", tell_the_truth, 2),)
