"""Measure what a step of the engine costs beside the time inside llama_decode.

    python benchmarks/engine_step.py MODEL.gguf [--streams 1 8 16] [--tokens 64] [--threads N]
    python benchmarks/engine_step.py fake: --streams 16

For each number of streams: tokens per second, milliseconds per step, the share of it spent
outside decode, and the mean batch. Run it on an idle machine; the medians of --rounds are shown.
"""

import argparse
import statistics
import threading
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Backend, Slice
from inference.backend.fake import fake_from_path
from inference.engine.thread import EngineThread
from inference.protocol.events import Done, Event, Failed
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.protocol.sampling import SamplingParams

PROMPT = "Tell a story about number {} and a cat that lives by the sea."


class Stopwatch:
    """Adds up the time spent inside decode, and the size of its batches."""

    def __init__(self, backend: Backend) -> None:
        self.seconds = 0.0
        self.num_steps = 0
        self._decode = backend.decode
        backend.decode = self._timed  # type: ignore[method-assign]

    def _timed(self, slices: Sequence[Slice]) -> NDArray[np.float32]:
        started = time.perf_counter()
        try:
            return self._decode(slices)
        finally:
            self.seconds += time.perf_counter() - started
            self.num_steps += 1


class Finish:
    """A sink that waits for a number of ends, and notes when the first token came."""

    def __init__(self) -> None:
        self._is_done = threading.Event()
        self._num_left = 0

    def expect(self, count: int) -> None:
        """Wait for this many ends from now on."""
        self._num_left = count
        self._is_done.clear()

    def wait(self) -> None:
        """Return when all expected ends have come."""
        self._is_done.wait()

    def __call__(self, events: Sequence[tuple[str, Event]]) -> None:
        """Count the ends among the events of a step."""
        self._num_left -= sum(isinstance(event, Done | Failed) for _, event in events)
        if self._num_left <= 0:
            self._is_done.set()


def load_backend(path: str, profile: RuntimeProfile) -> Backend:
    """Load a model, or the fake."""
    if path.startswith("fake:"):
        return fake_from_path(path, profile)
    from inference.backend.grouped import open_backend
    from inference.backend.llama_model import load_model

    return open_backend(load_model(make_spec(path, profile), lambda _: None), profile)


def make_spec(path: str, profile: RuntimeProfile) -> ReplicaSpec:
    """Describe a replica of one model file."""
    return ReplicaSpec(
        replica="bench",
        deployment="bench",
        model="bench",
        kind=ModelKind.CHAT,
        files=(path,),
        sha256=("",),
        profile=profile,
    )


def make_jobs(
    backend: Backend, count: int, options: argparse.Namespace, turn: int
) -> list[GenerationJob]:
    """Build jobs that share no prefix and never end early."""
    sampling = SamplingParams(temperature=options.temperature, seed=1)
    jobs = []
    for index in range(count):
        prompt = PROMPT.format(turn * 1000 + index)
        tokens = backend.model.tokenize(prompt, add_special=True, parse_special=True)
        jobs.append(
            GenerationJob(
                id=f"{turn}-{index}",
                deployment="bench",
                owner="bench",
                salt=f"{turn}-{index}",
                gateway="bench",
                prompt_tokens=tuple(tokens),
                deadline=time.time() + 3600,
                sampling=sampling,
                max_tokens=options.tokens,
                ignore_eos=True,
            )
        )
    return jobs


def main() -> None:
    """Run every number of streams in turn and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 16])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--no-flash", action="store_true")
    parser.add_argument("--unified", action="store_true")
    options = parser.parse_args()
    profile = RuntimeProfile(
        num_slots=max(options.streams),
        context_length=2048,
        num_threads=options.threads,
        flash_attention="off" if options.no_flash else "auto",
        is_kv_unified=options.unified,
    )
    backend = load_backend(options.model, profile)
    watch, finish = Stopwatch(backend), Finish()
    thread = EngineThread(backend, profile, finish)
    thread.start()
    turn = 0
    for streams in options.streams:
        lines = []
        for _ in range(options.rounds):
            turn += 1
            jobs = make_jobs(backend, streams, options, turn)
            finish.expect(streams)
            before, steps, started = watch.seconds, watch.num_steps, time.perf_counter()
            for job in jobs:
                thread.submit(job)
            finish.wait()
            total = time.perf_counter() - started
            num_steps = watch.num_steps - steps
            outside = (total - (watch.seconds - before)) / num_steps
            lines.append((streams * options.tokens / total, total / num_steps, outside))
        rate, step, outside = (statistics.median(column) for column in zip(*lines, strict=True))
        print(
            f"{streams:3} streams: {rate:7.1f} tokens/s, {step * 1e3:6.2f} ms a step, "
            f"{outside * 1e3:.3f} ms outside decode ({outside / step:.1%})"
        )
    thread.stop()


if __name__ == "__main__":
    main()
