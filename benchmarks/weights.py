"""What converted weights gain in speed, and what they change in answers.

    python benchmarks/weights.py MODEL.gguf [--types q8_0 f16] [--streams 1 4 16] [--rounds 5]

The file as it is and each conversion decode the same batches in turn: steps of one token for so
many sequences, and slices of 128 tokens of a prompt. Printed are the medians of the rounds' ratios,
as tokens per second against the file's own. Then the same text is read by all, and the
distributions over the next token are compared: how often the likeliest is the same, and how far
they are apart (Kullback-Leibler divergence, in nats a token; 0 is the same). f16 is the measure:
only there are activations not rounded to 8 bits.
"""

import argparse
import statistics
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from engine_step import load_backend
from numpy.typing import NDArray

from inference.backend.base import Backend, Slice
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.worker.conversion import convert_weights

NUM_PROMPT = 128
NUM_STEPS = 8
NUM_COMPARED = 256
# Tokens whose distributions are asked for at once: a row of a large vocabulary is a megabyte.
PIECE = 16
PROMPT = "The history of the lighthouse began when"
STORED = "as stored"


def main() -> None:
    """Load the file and its conversions, then measure them in turn."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--types", nargs="+", default=["q8_0", "f16"])
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    num_slots = max(options.streams)
    profile = RuntimeProfile(
        num_slots=num_slots, context_length=1024, step_token_budget=max(NUM_PROMPT, num_slots)
    )
    files = {STORED: str(options.model)} | {
        weight_type: convert(options.model, weight_type) for weight_type in options.types
    }
    backends = {name: load_backend(file, profile) for name, file in files.items()}
    for streams in options.streams:
        rounds = [
            {name: decode(backend, streams) for name, backend in backends.items()}
            for _ in range(options.rounds)
        ]
        show(f"decode, {streams} sequences", rounds)
    rounds = [
        {name: read_prompt(backend) for name, backend in backends.items()}
        for _ in range(options.rounds)
    ]
    show(f"prompt, {NUM_PROMPT} tokens", rounds)
    compare(backends)


def convert(model: Path, weight_type: str) -> str:
    """Give the path of a conversion."""
    spec = ReplicaSpec(
        replica="bench",
        deployment="bench",
        model="bench",
        kind=ModelKind.CHAT,
        files=(str(model.resolve()),),
        sha256=("",),
        profile=RuntimeProfile(weight_type=weight_type),
    )
    return convert_weights(spec, Path(tempfile.gettempdir()) / "llamero-benchmark").files[0]


def decode(backend: Backend, streams: int) -> float:
    """Give the seconds of some steps of one token for each of ``streams`` sequences."""
    for seq_id in range(streams):
        backend.keep_prefix(seq_id, 0)
        backend.decode([Slice(seq_id, 0, range(100, 116), 1)])
    started = time.perf_counter()
    for step in range(NUM_STEPS):
        backend.decode([Slice(seq_id, 16 + step, [100 + step], 1) for seq_id in range(streams)])
    return time.perf_counter() - started


def read_prompt(backend: Backend) -> float:
    """Give the seconds of a slice of a prompt."""
    backend.keep_prefix(0, 0)
    started = time.perf_counter()
    backend.decode([Slice(0, 0, range(100, 100 + NUM_PROMPT), 1)])
    return time.perf_counter() - started


def show(title: str, rounds: list[dict[str, float]]) -> None:
    """Print the speeds against the file's own."""
    for name in rounds[0]:
        if name != STORED:
            ratio = statistics.median(one[STORED] / one[name] for one in rounds)
            print(f"{title:24} {name:6} {ratio:5.2f} times the speed of the file's own weights")


def compare(backends: dict[str, Backend]) -> None:
    """Print how far the distributions are apart, of each two."""
    stored = backends[STORED]
    text = stored.model.tokenize(PROMPT, add_special=True, parse_special=True)
    rng = np.random.default_rng(7)
    chances = np.exp(distributions(stored, text, 0)[-1])
    while len(text) < NUM_COMPARED:
        text.append(int(rng.choice(len(chances), p=chances / chances.sum())))
        chances = np.exp(distributions(stored, text[-1:], len(text) - 1)[-1])
    found = {name: distributions(backend, text, 0) for name, backend in backends.items()}
    for (one, a), (other, b) in combinations(found.items(), 2):
        same = (a.argmax(axis=1) == b.argmax(axis=1)).mean()
        apart = (np.exp(a) * (a - b)).sum(axis=1).mean()
        print(f"{one} and {other}: same likeliest token {same:.1%}, divergence {apart:.5f}")


def distributions(backend: Backend, tokens: list[int], start: int) -> NDArray[np.float64]:
    """Give the logarithms of the probabilities after each token, a row for each."""
    if start == 0:
        backend.keep_prefix(0, 0)
    rows = [
        backend.decode(
            [Slice(0, start + at, tokens[at : at + PIECE], len(tokens[at : at + PIECE]))]
        ).astype(np.float64)
        for at in range(0, len(tokens), PIECE)
    ]
    logits = np.concatenate(rows)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


if __name__ == "__main__":
    main()
