"""What does the engine add to a bare loop of llama_decode with batches of the same shape?

    python benchmarks/engine_overhead.py MODEL.gguf [--streams 1 8 32] [--tokens 48] [--rounds 12]

The bare loop fills a batch once and decodes it at rising positions: no sampling, no text, no
events. The engine generates as many tokens for as many sequences, greedily; what counts are its
steps in which every sequence got a token, since their prompts may take several steps to compute.
Both run in turn in one process, each first in every other round; a ratio of 1.03 means 3 % more
time per step than the bare loop. Printed are the median of the rounds' ratios, with the middle half
of them, and the ratio of the fastest rounds, which is what is left where a neighbour on the machine
disturbs most.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

import llama_cpp
import msgspec
from engine_step import Finish, load_backend

from inference.backend.base import Slice
from inference.backend.llama import LlamaBackend
from inference.engine.thread import EngineThread
from inference.protocol.events import Event, Tokens
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import RuntimeProfile
from inference.protocol.sampling import SamplingParams

PROMPT_TOKENS = 16


class StepClock(Finish):
    """Notes when the first and the last step ended in which every sequence got a token."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.last = 0.0
        self.num_steps = 0
        self._streams = self._num_since = 0

    def expect(self, count: int) -> None:
        """Wait for this many ends from now on."""
        self._streams = count
        self.first = 0.0
        self.num_steps = 0
        super().expect(count)

    def __call__(self, events: Sequence[tuple[str, Event]]) -> None:
        """Count the steps between two that told a token of each."""
        num_told = sum(isinstance(event, Tokens) for _, event in events)
        self._num_since += num_told > 0
        if num_told == self._streams:
            self.last = time.perf_counter()
            if self.first:
                self.num_steps += self._num_since
            else:
                self.first = self.last
            self._num_since = 0
        super().__call__(events)


def time_bare(backend: LlamaBackend, streams: int, tokens: int) -> float:
    """Give the seconds a step of the bare loop takes."""
    for seq_id in range(streams):
        backend.keep_prefix(seq_id, 0)
        backend.decode([Slice(seq_id, 0, range(100, 100 + PROMPT_TOKENS), 1)])
    batch = backend._batch
    started = time.perf_counter()
    for step in range(tokens - 1):
        batch.fill([Slice(seq_id, PROMPT_TOKENS + step, [100], 1) for seq_id in range(streams)])
        assert llama_cpp.llama_decode(backend._context, batch.native) == 0
    return (time.perf_counter() - started) / (tokens - 1)


def time_engine(
    thread: EngineThread, clock: StepClock, streams: int, tokens: int, turn: int
) -> float:
    """Give the seconds a step of the engine takes."""
    clock.expect(streams)
    for index in range(streams):
        first = 200 + (turn * streams + index) % 20_000
        thread.submit(
            GenerationJob(
                id=f"{turn}-{index}",
                deployment="bench",
                owner="bench",
                salt=f"{turn}-{index}",
                gateway="bench",
                prompt_tokens=(first, *range(100, 99 + PROMPT_TOKENS)),
                deadline=time.time() + 3600,
                sampling=SamplingParams(temperature=0.0),
                max_tokens=tokens,
                ignore_eos=True,
            )
        )
    clock.wait()
    assert clock.num_steps > tokens // 2
    return (clock.last - clock.first) / clock.num_steps


def show(streams: int, loops: Sequence[float], engines: Sequence[float]) -> None:
    """Print a line for a number of streams: seconds a step of each round."""
    ratios = [engine / loop for loop, engine in zip(loops, engines, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{streams:3} streams: a step of the bare loop {statistics.median(loops) * 1e3:6.2f} ms, "
        f"of the engine {statistics.median(engines) * 1e3:6.2f} ms, engine/bare {middle:.3f} "
        f"({low:.3f} to {high:.3f}), fastest {min(engines) / min(loops):.3f}",
        flush=True,
    )


def main() -> None:
    """Run every number of streams in turn and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    num_slots = max(options.streams)
    profile = RuntimeProfile(
        num_slots=num_slots, context_length=512, step_token_budget=num_slots * PROMPT_TOKENS
    )
    alone = msgspec.structs.replace(profile, groups_prefixes=False)
    bare, own = load_backend(options.model, alone), load_backend(options.model, profile)
    assert isinstance(bare, LlamaBackend)
    clock = StepClock()
    thread = EngineThread(own, profile, clock)
    thread.start()
    turn = 0
    for streams in options.streams:
        loops, engines = [], []
        for _ in range(options.rounds):
            turn += 1
            if turn % 2:
                loops.append(time_bare(bare, streams, options.tokens))
            engines.append(time_engine(thread, clock, streams, options.tokens, turn))
            if not turn % 2:
                loops.append(time_bare(bare, streams, options.tokens))
        show(streams, loops, engines)
    thread.stop()


if __name__ == "__main__":
    main()
