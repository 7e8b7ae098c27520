"""Measure what it costs that the text of a request does not depend on the others.

    python benchmarks/deterministic.py MODEL.gguf [--streams 1 4 8] [--rounds 3] [--threads N]

Two engines over one loaded model, an ordinary and a deterministic one, work in turn: a prompt
alone, then streams that decode together. The medians of the rounds are shown, and what share of
the ordinary speed is left. A deterministic engine never has flash attention, which alone makes a
difference either way: --no-flash takes it from both.
"""

import argparse
import statistics
import time

import msgspec
from engine_step import Finish, load_backend

from inference.backend.base import Backend
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel
from inference.engine.thread import EngineThread
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import RuntimeProfile
from inference.protocol.sampling import SamplingParams

GREEDY = SamplingParams(temperature=0)
NUM_PROMPT = 1000
NUM_SHORT = 40


class Side:
    """One of the two engines, and what it was measured at."""

    def __init__(self, name: str, backend: Backend, profile: RuntimeProfile) -> None:
        self.name = name
        self._finish = Finish()
        self.thread = EngineThread(backend, profile, self._finish)
        self.thread.start()
        self._num_jobs = 0

    def run(self, count: int, num_prompt: int, num_tokens: int) -> float:
        """Run a number of jobs that share nothing together; gives the seconds."""
        jobs = [self._make_job(num_prompt, num_tokens) for _ in range(count)]
        self._finish.expect(count)
        started = time.perf_counter()
        for job in jobs:
            self.thread.submit(job)
        self._finish.wait()
        return time.perf_counter() - started

    def _make_job(self, num_prompt: int, num_tokens: int) -> GenerationJob:
        self._num_jobs += 1
        tokens = tuple((self._num_jobs * 131 + at * 17) % 30_000 + 100 for at in range(num_prompt))
        return GenerationJob(
            id=str(self._num_jobs),
            deployment="bench",
            owner="bench",
            salt=str(self._num_jobs),
            gateway="bench",
            prompt_tokens=tokens,
            deadline=time.time() + 3600,
            sampling=GREEDY,
            max_tokens=num_tokens,
            ignore_eos=True,
        )


def measure(sides: list[Side], count: int, num_prompt: int, num_tokens: int, rounds: int) -> None:
    """Let the sides work in turn, and print a line."""
    is_prompt = num_tokens == 1
    work = num_prompt if is_prompt else count * num_tokens
    seconds: dict[str, list[float]] = {side.name: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            seconds[side.name].append(side.run(count, num_prompt, num_tokens))
    ordinary, deterministic = (work / statistics.median(times) for times in seconds.values())
    what = "a prompt alone" if is_prompt else f"{count} streams"
    print(
        f"{what:15}: {ordinary:7.1f} tokens/s, deterministic {deterministic:7.1f} "
        f"({deterministic / ordinary:.0%})"
    )


def main() -> None:
    """Load the model once, and print a line for the prompt and each number of streams."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--no-flash", action="store_true")
    options = parser.parse_args()
    ordinary = RuntimeProfile(
        num_slots=max(options.streams),
        context_length=2048,
        num_threads=options.threads,
        flash_attention="off" if options.no_flash else "auto",
    )
    deterministic = msgspec.structs.replace(ordinary, is_deterministic=True)
    backend = load_backend(options.model, ordinary)
    model = backend.model
    assert isinstance(model, LlamaModel)
    sides = [
        Side("ordinary", backend, ordinary),
        Side("deterministic", LlamaBackend(model, deterministic), deterministic),
    ]
    measure(sides, 1, NUM_PROMPT, 1, options.rounds)
    for count in options.streams:
        measure(sides, count, NUM_SHORT, options.tokens, options.rounds)
    for side in sides:
        side.thread.stop()


if __name__ == "__main__":
    main()
