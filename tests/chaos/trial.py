"""What a trial is, and how one is run within its time."""

import asyncio
import signal
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tests.chaos.tally import Tally

LIMIT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Size:
    """How much of a trial is run. ``is_full`` has its waits at full length."""

    rounds: int
    is_full: bool = False

    def seconds(self, usual: float, full: float) -> float:
        """Choose how long something lasts."""
        return full if self.is_full else usual


class NotHere(Exception):
    """A trial cannot be made on this machine; the message says why."""


Run = Callable[[Tally, Size], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to make trouble. ``rounds`` is what `make chaos` runs."""

    promise: str
    title: str
    run: Run
    rounds: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial; ``skipped`` says why it was not made."""

    tally: Tally
    seconds: float
    skipped: str = ""


def run_trial(trial: Trial, size: Size) -> Outcome:
    """Run a trial; one that raises or takes too long has failed."""
    tally, began, skipped = Tally(), time.monotonic(), ""
    limit = LIMIT_SECONDS * (10 if size.is_full else 1)
    before = signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(limit)
    try:
        asyncio.run(trial.run(tally, size))
    except NotHere as reason:
        skipped = str(reason)
    except Exception as error:
        traceback.print_exc()
        tally.judge(False, f"{type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return Outcome(tally, time.monotonic() - began, skipped)


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError("the trial took too long")
