"""What does the engine add to a bare loop of llama_decode with batches of the same shape?

    python benchmarks/engine_overhead.py MODEL.gguf [--streams 1 8 32] [--tokens 16] [--rounds 30]

One model with two contexts: the engine generates tokens for some sequences, greedily; the bare loop
fills batches with the same tokens, which it knows already, and decodes them, with no sampling, no
text and no events. Each round is short and runs both, in an order drawn by lot. What is measured is
single steps: of the engine the time between two in a row that each told a token to every stream.

A round's ratio is the engine's median step over the bare loop's; 1.03 means 3 % more time. Printed
are the median of all rounds with their middle half, and the ratio of the fastest tenths: the 10th
percentile of all steps of the engine over that of the bare loop.

Where neighbours disturb the machine the middle half grows wide: believe no median whose middle half
spans more than 0.02, but take more rounds (--rounds 100), tie all to cores that nobody else uses
(taskset), or go by the fastest tenths, which are the steps that nobody disturbed.
"""

import argparse
import random
import statistics
import time
from collections.abc import Sequence

import llama_cpp
import msgspec
from engine_step import Finish, make_spec

from inference.backend.base import Slice
from inference.backend.grouped import open_backend
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import load_model
from inference.engine.thread import EngineThread
from inference.protocol.events import Event, Tokens
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import RuntimeProfile
from inference.protocol.sampling import SamplingParams

PROMPT_TOKENS = 16


class StepClock(Finish):
    """Measures steps that follow a full one and are full: each told a token to every stream.

    ``tokens`` are those of the last run, by the job.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self.tokens: dict[str, list[int]] = {}
        self._streams = 0
        self._last_full = 0.0

    def expect(self, count: int) -> None:
        """Wait for this many ends from now on."""
        self.seconds, self.tokens = [], {}
        self._streams, self._last_full = count, 0.0
        super().expect(count)

    def __call__(self, events: Sequence[tuple[str, Event]]) -> None:
        """Take the time of a step by its events."""
        now = time.perf_counter()
        told = [(job_id, event) for job_id, event in events if isinstance(event, Tokens)]
        is_full = len(told) == self._streams
        if is_full and self._last_full:
            self.seconds.append(now - self._last_full)
        self._last_full = now if is_full else 0.0
        for job_id, event in told:
            self.tokens.setdefault(job_id, []).extend(event.token_ids)
        super().__call__(events)


class Sides:
    """The bare loop and the engine, with a context each of one model."""

    def __init__(self, path: str, num_slots: int) -> None:
        profile = RuntimeProfile(
            num_slots=num_slots, context_length=512, step_token_budget=num_slots * PROMPT_TOKENS
        )
        model = load_model(make_spec(path, profile), lambda _: None)
        self._bare = LlamaBackend(model, msgspec.structs.replace(profile, groups_prefixes=False))
        self._clock = StepClock()
        self._engine = EngineThread(open_backend(model, profile), profile, self._clock)
        self._engine.start()
        self._num_jobs = 0

    def run_bare(self) -> list[float]:
        """Give the seconds of each step of the bare loop, over what the engine computed last."""
        texts = [(_prompt(int(job_id)), its) for job_id, its in self._clock.tokens.items()]
        for seq_id in range(len(texts)):
            self._bare.keep_prefix(seq_id, 0)
        self._bare.decode([Slice(at, 0, prompt, 1) for at, (prompt, _) in enumerate(texts)])
        batch, seconds = self._bare._batch, []
        before = time.perf_counter()
        for step in range(len(texts[0][1]) - 1):
            at = PROMPT_TOKENS + step
            batch.fill([Slice(seq, at, [its[step]], 1) for seq, (_, its) in enumerate(texts)])
            assert llama_cpp.llama_decode(self._bare._context, batch.native) == 0
            now = time.perf_counter()
            seconds.append(now - before)
            before = now
        return seconds

    def run_engine(self, streams: int, tokens: int) -> list[float]:
        """Give the seconds of each step of the engine between two full ones."""
        self._clock.expect(streams)
        for _ in range(streams):
            self._engine.submit(self._make_job(tokens))
        self._clock.wait()
        assert len(self._clock.seconds) > tokens // 2
        return self._clock.seconds

    def close(self) -> None:
        """Free the contexts."""
        self._engine.stop()
        self._bare.close()

    def _make_job(self, tokens: int) -> GenerationJob:
        """Make a job that shares no beginning with any other and never ends early."""
        self._num_jobs += 1
        return GenerationJob(
            id=f"{self._num_jobs}",
            deployment="bench",
            owner="bench",
            salt=f"{self._num_jobs}",
            gateway="bench",
            prompt_tokens=_prompt(self._num_jobs),
            deadline=time.time() + 3600,
            sampling=SamplingParams(temperature=0.0),
            max_tokens=tokens,
            ignore_eos=True,
        )


def _prompt(number: int) -> tuple[int, ...]:
    """Make the prompt of a job; neighbours' begin with different tokens."""
    return (200 + number % 20_000, *range(100, 99 + PROMPT_TOKENS))


def measure(sides: Sides, streams: int, tokens: int, rounds: int) -> None:
    """Run the rounds of a number of streams, and print what came of them."""
    bare: list[float] = []
    engine: list[float] = []
    ratios = []
    sides.run_engine(streams, tokens)
    for number in range(1 + rounds):
        if random.random() < 0.5:
            ours, theirs = sides.run_engine(streams, tokens), sides.run_bare()
        else:
            theirs, ours = sides.run_bare(), sides.run_engine(streams, tokens)
        if number:  # the first one warms up
            ratios.append(statistics.median(ours) / statistics.median(theirs))
            bare += theirs
            engine += ours
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{streams:3} streams: a step of the bare loop {statistics.median(bare) * 1e3:6.2f} ms, "
        f"of the engine {statistics.median(engine) * 1e3:6.2f} ms, engine/bare {middle:.3f} "
        f"(middle half {low:.3f} to {high:.3f}), fastest tenths "
        f"{statistics.quantiles(engine, n=10)[0] / statistics.quantiles(bare, n=10)[0]:.3f}",
        flush=True,
    )


def main() -> None:
    """Print a line for each number of streams."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=30, help="two or more")
    options = parser.parse_args()
    sides = Sides(options.model, max(options.streams))
    for streams in options.streams:
        measure(sides, streams, options.tokens, options.rounds)
    sides.close()


if __name__ == "__main__":
    main()
