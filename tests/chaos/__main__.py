"""Run the trials and print what was promised, tried and broken: ``python -m tests.chaos``.

``ROUNDS`` multiplies the rounds of each trial; a word as argument chooses trials by their names.
"""

import asyncio
import os
import sys
import time

from tests.chaos.lab import open_lab
from tests.chaos.trials import TRIALS


async def main(word: str, factor: int) -> int:
    """Run the trials whose name has the word; gives the exit code."""
    num_failures = 0
    print(f"{'promise':<50} {'rounds':>6} {'tries':>6} {'failures':>8} {'seconds':>8}")
    for name, trial, rounds in TRIALS:
        if word.lower() not in name.lower():
            continue
        began = time.monotonic()
        with open_lab() as lab:
            outcome = await trial(lab, rounds * factor)
            await lab.client.async_redis.aclose()
        num_failures += outcome.num_failures
        counts = f"{rounds * factor:>6} {outcome.num_tries:>6} {outcome.num_failures:>8}"
        print(f"{name:<50} {counts} {time.monotonic() - began:>8.1f}", flush=True)
    return 1 if num_failures else 0


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    sys.exit(asyncio.run(main(chosen, int(os.environ.get("ROUNDS", "1")))))
