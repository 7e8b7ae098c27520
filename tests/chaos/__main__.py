"""Make trouble and print what was promised, tried and broken: ``python -m tests.chaos``.

    python -m tests.chaos [WORD …] [--scale 1.0] [--full] [--list]

Words choose trials by promise or title. See docs/chaos.md.
"""

import argparse
import signal
import sys

from tests.chaos.trial import Outcome, Size, Trial, run_trial
from tests.chaos.trials import TRIALS

WIDTH = 66


def main() -> int:
    """Run the chosen trials; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="parts of promises or titles; P1 is only P1")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies all rounds")
    parser.add_argument("--full", action="store_true", help="pauses and cuts at full length")
    parser.add_argument("--list", action="store_true", help="name the trials and end")
    options = parser.parse_args()
    chosen = [trial for trial in TRIALS if _is_meant(trial, options.words)]
    if not chosen:
        parser.error("no trial has such a name; --list names all")
    if options.list:
        for trial in chosen:
            print(f"{trial.promise:<5} {trial.title} ({trial.rounds})")
        return 0
    # Whoever ends this early gets no processes and namespaces left behind.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(143))
    head = f"{'rounds':>6} {'tries':>7} {'struck':>7} {'failures':>8} {'seconds':>8}"
    print(f"{'promise':<{WIDTH}} {head}")
    failed = [trial for trial in chosen if not _run(trial, options.scale, options.full)]
    print(f"\n{len(chosen)} trials, {len(failed)} failed")
    return 1 if failed else 0


def _is_meant(trial: Trial, words: list[str]) -> bool:
    name = f"{trial.promise} {trial.title}".lower()
    return not words or any(
        word.lower() in name.split() if word[1:].isdecimal() else word.lower() in name
        for word in words
    )


def _run(trial: Trial, scale: float, is_full: bool) -> bool:
    """Run a trial and print its line; tells whether it kept its promise, or could not be made."""
    size = Size(max(1, round(trial.rounds * scale)), is_full)
    outcome = run_trial(trial, size)
    print(_line(trial, size, outcome), flush=True)
    return bool(outcome.skipped) or not outcome.tally.num_failures


def _line(trial: Trial, size: Size, outcome: Outcome) -> str:
    name = f"{trial.promise:<5} {trial.title}"
    if outcome.skipped:
        return f"{name:<{WIDTH}} skipped: {outcome.skipped}"
    tally = outcome.tally
    counts = f"{size.rounds:>6} {tally.num_tries:>7} {tally.num_struck:>7} {tally.num_failures:>8}"
    line = f"{name:<{WIDTH}} {counts} {outcome.seconds:>8.1f}"
    return "\n".join([line, *(f"      {note}" for note in tally.notes)])


if __name__ == "__main__":
    sys.exit(main())
