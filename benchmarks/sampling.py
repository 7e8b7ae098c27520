"""Measure what choosing one token costs, here and by llama.cpp's own llama_sampler_sample.

    python benchmarks/sampling.py MODEL.gguf [--rounds 7] [--count 100]

Both sides choose from the same logits of the model, in turn, round by round; the median of the
rounds' ratios is shown, with the best microseconds of each side. The bare side has exactly the
samplers that the settings need, at the end of a chain that llama.cpp applies to its own logits.
"""

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

import llama_cpp
import numpy as np

from inference.backend.base import Row, Slice
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import load_model
from inference.backend.logprobs import rows_to_logprobs
from inference.backend.native_samplers import NativeSamplers, chain_of, effective_samplers
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.protocol.sampling import SamplingParams

PROMPT = "Once upon a time there was a little girl who lived at the edge of a great forest. " * 3
OFF: dict[str, Any] = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "default chain": {},
    "OpenAI's defaults": {"temperature": 1.0, "top_p": 1.0},
    "penalties, default chain": {"repeat_penalty": 1.1},
    "penalties, greedy": {"temperature": 0.0, "repeat_penalty": 1.1},
    "dry, default chain": {"dry_multiplier": 0.8},
    "min_p alone": {**OFF, "min_p": 0.05},
    "temperature alone": OFF,
    "top_p alone": {**OFF, "top_p": 0.9},
    "typical_p alone": {**OFF, "typical_p": 0.9},
    "mirostat 2": {"mirostat": 2},
}
OURS_ALONE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "greedy with 5 logprobs": ({"temperature": 0.0}, {"num_logprobs": 5}),
    "default chain with 5 logprobs": ({}, {"num_logprobs": 5}),
    "default chain with a grammar": ({"grammar": "root ::= [^0-9]*"}, {}),
    "default chain with 300 biases": (
        {"logit_bias": tuple((token, -1.0) for token in range(300))},
        {},
    ),
}


class Bench:
    """A model with logits in its context, and both ways to choose from them."""

    def __init__(self, path: str, count: int) -> None:
        profile = RuntimeProfile(num_slots=1, context_length=512)
        spec = ReplicaSpec(
            replica="bench",
            deployment="bench",
            model="bench",
            kind=ModelKind.CHAT,
            files=(path,),
            sha256=("",),
            profile=profile,
        )
        self.model = load_model(spec, lambda _: None)
        self.backend = LlamaBackend(self.model, profile)
        self.native = NativeSamplers(self.model)
        self.tokens = self.model.tokenize(PROMPT, add_special=True, parse_special=True)
        rows = self.backend.decode([Slice(0, 0, self.tokens, 1)])
        self.row: Row = rows[0].copy()
        self.count = count

    def ours(self, sampling: dict[str, Any], fields: dict[str, Any]) -> Callable[[], float]:
        """Give a function that chooses through the sampler of a job, and tells its seconds."""
        job = GenerationJob(
            id="bench",
            deployment="bench",
            owner="bench",
            salt="bench",
            gateway="bench",
            deadline=4e9,
            prompt_tokens=tuple(self.tokens),
            sampling=SamplingParams(seed=1, **sampling),
            **fields,
        )

        def choose() -> float:
            sampler, row, seconds = self.backend.open_sampler(job), self.row.copy(), 0.0
            for _ in range(self.count):
                row[:] = self.row
                started = time.perf_counter()
                sampler.sample(row)
                seconds += time.perf_counter() - started
            sampler.close()
            return seconds

        return choose

    def bare(self, sampling: dict[str, Any]) -> Callable[[], float]:
        """Give a function that chooses by llama_sampler_sample, and tells its seconds."""
        params = SamplingParams(seed=1, **sampling)
        names = [*effective_samplers(params)]
        context = self.backend._context

        def choose() -> float:
            samplers = [self.native.open(name, params) for name in names]
            chain = chain_of([*samplers, self._selector(params)])
            native = ctypes.cast(chain, llama_cpp.llama_sampler_p_ctypes)
            for token in self.tokens:
                llama_cpp.llama_sampler_accept(native, token)
            started = time.perf_counter()
            for _ in range(self.count):
                llama_cpp.llama_sampler_sample(native, context, -1)
            seconds = time.perf_counter() - started
            llama_cpp.llama_sampler_free(native)
            return seconds

        return choose

    def _selector(self, params: SamplingParams) -> Any:
        if params.temperature <= 0:
            return llama_cpp.llama_sampler_init_greedy()
        if params.mirostat:
            return self.native.open("mirostat", params)
        return llama_cpp.llama_sampler_init_dist(1)

    def score(self, num_rows: int, num_top: int) -> Callable[[], float]:
        """Give a function that judges prompt tokens, and tells its seconds per ``count``."""
        rows = np.repeat(self.row[None], num_rows, axis=0)

        def judge() -> float:
            started = time.perf_counter()
            for _ in rows_to_logprobs(self.model, rows, self.tokens[:num_rows], num_top):
                pass
            return (time.perf_counter() - started) / num_rows * self.count

        return judge


def main() -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    bench = Bench(options.model, options.count)
    scale = 1e6 / options.count
    print(f"{bench.model.num_vocab} tokens; microseconds a token: ours, bare, ours / bare")
    for name, sampling in SETTINGS.items():
        ours, bare = bench.ours(sampling, {}), bench.bare(sampling)
        pairs = [(ours(), bare()) for _ in range(options.rounds)]
        ratio = statistics.median(one / other for one, other in pairs)
        best = [min(column) * scale for column in zip(*pairs, strict=True)]
        print(f"{name:32} {best[0]:8.1f} {best[1]:8.1f} {ratio:7.2f}")
    alone = {name: bench.ours(*settings) for name, settings in OURS_ALONE.items()}
    for num_top in (0, 1, 5, 20):
        alone[f"a prompt token, {num_top} logprobs"] = bench.score(32, num_top)
    for name, choose in alone.items():
        print(f"{name:32} {min(choose() for _ in range(options.rounds)) * scale:8.1f}")


if __name__ == "__main__":
    main()
