"""What it gains that sequences with the same beginning attend to it together.

    python benchmarks/prefix_groups.py MODEL.gguf [--streams 16] [--shared 500] [--own 30]
        [--tokens 32] [--rounds 3]

Each round sends the same requests, twice as many as there are streams, to two engines in turn: one
that groups sequences, and one that does not. All prompts are new and begin with the same random
tokens. Printed are requests' tokens per second and the ratio of each round; the median last. Give
``--shared 0`` for the price where there is nothing to share.
"""

import argparse
import random
import statistics
import time

from engine_step import Finish, load_backend

from inference.backend.base import Backend
from inference.engine.thread import EngineThread
from inference.protocol.events import Done, Failed
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import RuntimeProfile
from inference.protocol.sampling import SamplingParams

VOCABULARY = range(100, 30_000)


class Side:
    """An engine, and the requests of a round."""

    def __init__(self, options: argparse.Namespace, *, is_grouping: bool) -> None:
        self.name = "grouped" if is_grouping else "apart"
        self.profile = RuntimeProfile(
            context_length=2048, num_slots=options.streams, groups_prefixes=is_grouping
        )
        self.backend: Backend = load_backend(options.model, self.profile)
        self.finish = Finish()
        self.thread = EngineThread(self.backend, self.profile, self._tell)
        self.thread.start()
        self._waiting: list[GenerationJob] = []

    def run(self, jobs: list[GenerationJob], num_streams: int) -> float:
        """Compute the jobs, so many at a time; returns tokens generated per second."""
        self.finish.expect(len(jobs))
        self._waiting = jobs[num_streams:]
        started = time.perf_counter()
        for job in jobs[:num_streams]:
            self.thread.submit(job)
        self.finish.wait()
        seconds = time.perf_counter() - started
        return sum(job.max_tokens or 0 for job in jobs) / seconds

    def _tell(self, events: list[tuple[str, object]]) -> None:
        for _, event in events:
            if isinstance(event, Done | Failed) and self._waiting:
                self.thread.submit(self._waiting.pop(0))
        self.finish(events)  # type: ignore[arg-type]


def make_jobs(options: argparse.Namespace, seed: int) -> list[GenerationJob]:
    """Make prompts that begin alike and end each in its own way."""
    rng = random.Random(seed)
    shared = rng.choices(VOCABULARY, k=options.shared)
    return [
        GenerationJob(
            id=f"{seed}-{index}",
            deployment="bench",
            owner="bench",
            salt="bench",
            gateway="bench",
            prompt_tokens=tuple(shared + rng.choices(VOCABULARY, k=options.own)),
            deadline=time.time() + 3600,
            sampling=SamplingParams(temperature=0.8, seed=index),
            max_tokens=options.tokens,
            ignore_eos=True,
        )
        for index in range(2 * options.streams)
    ]


def main() -> None:
    """Measure both in turn."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--shared", type=int, default=500)
    parser.add_argument("--own", type=int, default=30)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sides = [Side(options, is_grouping=True), Side(options, is_grouping=False)]
    ratios = []
    for number in range(options.rounds):
        seed = int(time.time()) + number
        order = sides if number % 2 else sides[::-1]
        speeds = {side.name: side.run(make_jobs(options, seed), options.streams) for side in order}
        ratios.append(speeds["grouped"] / speeds["apart"])
        print(
            f"round {number + 1}: grouped {speeds['grouped']:.1f} tokens/s, "
            f"apart {speeds['apart']:.1f}, ratio {ratios[-1]:.2f}",
            flush=True,
        )
    print(f"{options.streams} streams, {options.shared} tokens shared and {options.own} own:")
    print(f"grouped/apart {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
