"""The memory estimate against what a replica's process uses when every slot is full.

    python benchmarks/memory_estimate.py MODEL.gguf [MODEL.gguf ...] [--case 'num_slots=4 ...']

Each case loads the model in a process of its own, fills every context with random tokens, and
reads the process's memory. Printed as MiB and as ratios of estimate to use: 1 is exact.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from inference.gguf.examine import inspect_files  # noqa: E402
from inference.gguf.memory import Load, estimate_memory  # noqa: E402
from inference.gguf.summary import ModelSummary  # noqa: E402
from inference.protocol.events import Done, Event, Failed  # noqa: E402
from inference.protocol.jobs import EmbeddingJob, GenerationJob, Job  # noqa: E402
from inference.protocol.replicas import ReplicaSpec, RuntimeProfile  # noqa: E402
from inference.protocol.sampling import SamplingParams  # noqa: E402

MIB = 1 << 20
CASES = (
    "context_length=512 num_slots=4",
    "context_length=1024 num_slots=8",
    "context_length=1024 num_slots=4 use_mmap=false",
    "context_length=1024 num_slots=4 cache_type_k=q8_0 cache_type_v=q8_0",
    "context_length=1024 num_slots=4 flash_attention=off",
    "context_length=512 num_slots=4 is_kv_unified=true",
    "context_length=512 num_slots=4 weight_type=q8_0",
)
ENCODER_CASES = ("context_length=512", "context_length=256 step_token_budget=512 use_mmap=false")


class Used(msgspec.Struct):
    """What the child read of itself, in bytes."""

    idle: int
    full: int


def main() -> None:
    """Run every case of every model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        measure(msgspec.json.decode(options.child, type=ReplicaSpec))
        return
    print(f"{'':58} {'idle':>22} {'full':>22}")
    print(f"{'model and profile':58} {'said':>6} {'used':>6} {'ratio':>7} {'said':>7} {'used':>6}")
    for path in options.models:
        summary = inspect_files([path])
        cases = options.case or (CASES if summary.kind.is_generative else ENCODER_CASES)
        for case in cases:
            show(path, summary, case)


def show(path: Path, summary: ModelSummary, case: str) -> None:
    """Run one case and print a line."""
    profile = make_profile(case)
    load = Load(
        shape=summary.memory,
        context_length=min(profile.context_length, summary.context_length),
        is_generative=summary.kind.is_generative,
    )
    said = estimate_memory(load, profile)
    spec = ReplicaSpec(
        replica="bench",
        deployment="bench",
        model="bench",
        kind=summary.kind,
        files=(str(path.resolve()),),
        sha256=("",),
        profile=profile,
    )
    used = run_child(spec)
    print(
        f"{path.name[:20]:20} {case[:37]:37} "
        f"{said.idle_bytes / MIB:6.0f} {used.idle / MIB:6.0f} {said.idle_bytes / used.idle:7.2f} "
        f"{said.full_bytes / MIB:7.0f} {used.full / MIB:6.0f} "
        f"{said.full_bytes / used.full:7.2f}",
        flush=True,
    )


def make_profile(case: str) -> RuntimeProfile:
    """Read settings like ``num_slots=4``; cold prefixes are off, since nothing fills them here."""
    settings: dict[str, Any] = {"prefix_host_bytes": 0}
    for word in case.split():
        name, _, value = word.partition("=")
        settings[name] = value
    return msgspec.convert(settings, RuntimeProfile, strict=False)


def run_child(spec: ReplicaSpec) -> Used:
    """Measure in a fresh process."""
    command = [sys.executable, __file__, "-", "--child", msgspec.json.encode(spec).decode()]
    answer = subprocess.run(command, capture_output=True, check=False)
    lines = answer.stdout.splitlines()
    if not lines:
        complaint = answer.stderr.decode(errors="replace")[-2000:]
        raise SystemExit(complaint or f"the child ended with status {answer.returncode}")
    return msgspec.json.decode(lines[-1], type=Used)


def measure(spec: ReplicaSpec) -> None:
    """In the child: load as a replica does, fill every context, print what that took."""
    import inference.worker.lifecycle  # noqa: F401  what a replica imports counts too
    from inference.worker.conversion import convert_weights, needs_conversion
    from inference.worker.loading import build_engine

    finish = Finish()
    if needs_conversion(spec):
        spec = convert_weights(spec, Path(tempfile.gettempdir()) / "llamero-benchmark")
    engine = build_engine(spec, finish, lambda _: None)
    engine.runner.start()
    idle = resident_bytes()
    facts = engine.model.facts()
    jobs = list(make_jobs(spec, facts.num_vocab, facts.context_length))
    finish.expect(len(jobs))
    for job in jobs:
        engine.runner.submit(job)
    finish.wait()
    print(msgspec.json.encode(Used(idle, resident_bytes())).decode(), flush=True)
    os._exit(0)


class Finish:
    """Waits until all jobs have ended; a failed one ends the child."""

    def __init__(self) -> None:
        self._num_left = 0
        self._is_done = threading.Event()

    def expect(self, count: int) -> None:
        """Wait for so many ends."""
        self._num_left = count

    def wait(self) -> None:
        """Return when they have come."""
        self._is_done.wait()

    def __call__(self, events: Sequence[tuple[str, Event]]) -> None:
        """Count ends."""
        for _, event in events:
            if isinstance(event, Failed):
                print(event, file=sys.stderr, flush=True)
                os._exit(1)
            self._num_left -= isinstance(event, Done)
        if self._num_left <= 0:
            self._is_done.set()


def make_jobs(spec: ReplicaSpec, num_vocab: int, context_length: int) -> list[Job]:
    """Build jobs whose contexts are all full, with nothing in common."""
    random_tokens = random.Random(1)
    common: dict[str, Any] = {
        "deployment": "bench",
        "gateway": "bench",
        "deadline": time.time() + 3600,
    }

    def draw(count: int) -> tuple[int, ...]:
        return tuple(random_tokens.randrange(num_vocab // 2, num_vocab - 10) for _ in range(count))

    jobs: list[Job] = []
    if spec.profile.serves_embeddings or not spec.kind.is_generative:
        inputs = tuple(draw(context_length - 2) for _ in range(8))
        jobs.append(EmbeddingJob(id="vectors", owner="bench", inputs=inputs, **common))
    if not spec.kind.is_generative:
        return jobs
    num_answer = 8
    return jobs + [
        GenerationJob(
            id=str(slot),
            owner=str(slot),
            salt=str(slot),
            prompt_tokens=draw(context_length - num_answer),
            max_tokens=num_answer,
            ignore_eos=True,
            sampling=SamplingParams(seed=1),
            **common,
        )
        for slot in range(spec.profile.num_slots)
    ]


def resident_bytes() -> int:
    """Read what of this process is in memory, files included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    main()
