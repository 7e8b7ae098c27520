"""Measure what moving a computed prefix costs, against computing it again.

    python benchmarks/prefix_spill.py MODEL.gguf [--tokens 16 64 256 700] [--copies 15]

For each length: milliseconds to compute it, to copy it to as many slots as ``--copies`` says (one
save, many restores), to save it to host memory, to write and read it back on disk, and to restore
it; and how many times faster than computing it restoring is, from memory and from disk. The
medians of --rounds are shown.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from inference.backend.base import Slice
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import load_model
from inference.cache.disk_shelf import DiskCopy
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile

COLUMNS = ("tokens", "MiB", "compute", "fan-out", "save", "write", "read", "restore", "x", "x disk")
Result = TypeVar("Result")


class Clock:
    """Collects the milliseconds of named pieces of work over several rounds."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}

    def time(self, name: str, work: Callable[[], Result]) -> Result:
        """Do work and note how long it took."""
        started = time.perf_counter()
        result = work()
        self._times.setdefault(name, []).append((time.perf_counter() - started) * 1000)
        return result

    def median(self, name: str) -> float:
        """Give the median of a piece of work."""
        return statistics.median(self._times[name])


def compute(backend: LlamaBackend, num_tokens: int, chunk: int) -> None:
    """Prefill slot 0 in steps as an engine without other work would."""
    backend.keep_prefix(0, 0)
    tokens = [100 + 7 * at % 1000 for at in range(num_tokens)]
    for start in range(0, num_tokens, chunk):
        piece = tokens[start : start + chunk]
        backend.decode([Slice(0, start, piece, int(start + chunk >= num_tokens))])


def fan_out(backend: LlamaBackend, num_tokens: int, num_copies: int) -> None:
    """Copy slot 0 to those behind it."""
    for slot in range(1, 1 + num_copies):
        if backend.copy_prefix(0, slot, num_tokens) != num_tokens:
            raise SystemExit("the prefix could not be copied")


def measure(
    backend: LlamaBackend, num_tokens: int, num_copies: int, rounds: int, directory: Path
) -> tuple[float, ...]:
    """Measure one length; gives a row of the table."""
    clock, num_bytes = Clock(), 0
    for _ in range(rounds):
        clock.time("compute", lambda: compute(backend, num_tokens, 256))
        clock.time("fan-out", lambda: fan_out(backend, num_tokens, num_copies))
        # Not slot 0, whose state the copies have left at hand.
        state = clock.time("save", lambda: backend.save_state(1, 1 << 40))
        if state is None:
            raise SystemExit("the state could not be saved")
        num_bytes = state.nbytes
        copy = clock.time("write", lambda state=state: DiskCopy(directory, state))  # type: ignore[misc]
        read = clock.time("read", copy.read)
        copy.close()
        if read is None:
            raise SystemExit("the state could not be read back")
        clock.time("restore", lambda read=read: backend.restore_state(1, read, num_tokens))  # type: ignore[misc]
    times = [clock.median(name) for name in COLUMNS[2:8]]
    from_disk = clock.median("read") + clock.median("restore")
    ratios = (times[0] / clock.median("restore"), times[0] / from_disk)
    return (num_tokens, num_bytes / 2**20, *times, *ratios)


def main() -> None:
    """Parse, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 64, 256, 700])
    parser.add_argument("--copies", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--unified", action="store_true", help="share cells instead of copying")
    arguments = parser.parse_args()
    profile = RuntimeProfile(
        num_slots=arguments.copies + 1,
        context_length=8192,
        num_threads=arguments.threads,
        is_kv_unified=arguments.unified,
    )
    spec = ReplicaSpec(
        replica="bench",
        deployment="bench",
        model="bench",
        kind=ModelKind.COMPLETION,
        files=(arguments.model,),
        sha256=("",),
        profile=profile,
    )
    backend = LlamaBackend(load_model(spec, lambda _: None), profile)
    print("".join(f"{name:>10}" for name in COLUMNS))
    with tempfile.TemporaryDirectory() as directory:
        for num_tokens in arguments.tokens:
            row = measure(backend, num_tokens, arguments.copies, arguments.rounds, Path(directory))
            print("".join(f"{value:>10.4g}" for value in row), flush=True)


if __name__ == "__main__":
    main()
