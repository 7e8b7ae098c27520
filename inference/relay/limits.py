"""What a request would take of which limits, and what the server says to that.

The script that takes a request in also takes what it needs, of all limits or of none: see
``lua/limits.lua``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from inference.protocol.errors import EngineError, ErrorCode
from inference.relay import keys
from inference.relay.connect import SyncRedis

MAX_TRIES = 5
_encoder = msgspec.json.Encoder()


class CounterKind(StrEnum):
    """What a counter counts: of the last minute, of a budget, or right now."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    INPUT = "input"
    OUTPUT = "output"
    SPENT_TOKENS = "spent"
    MONEY = "money"
    OPEN = "open"
    QUEUED = "queued"


_COUNTING_OLDER_JOBS = frozenset(
    {CounterKind.SPENT_TOKENS, CounterKind.MONEY, CounterKind.OPEN, CounterKind.QUEUED}
)


class Period(StrEnum):
    """How long a budget is for."""

    DAY = "day"
    MONTH = "month"


@lru_cache(maxsize=1024)
def _window(period: Period, zone: str, time: int) -> tuple[int, int]:
    begins = datetime.fromtimestamp(time, ZoneInfo(zone)).replace(
        hour=0, minute=0, second=0, fold=0
    )
    if period is Period.DAY:
        ends = begins + timedelta(days=1)
    else:
        begins = begins.replace(day=1)
        ends = (begins + timedelta(days=31)).replace(day=1)
    return int(begins.timestamp()), int(ends.timestamp())


class Prices(NamedTuple):
    """What a token costs, in millionths of a millionth: of a prompt, a cached one, of an answer."""

    input: int = 0
    cached: int = 0
    output: int = 0


FREE = Prices()


@dataclass(frozen=True, slots=True)
class Window:
    """The days or months of a budget, as they are in a time zone."""

    period: Period
    zone: str

    def around(self, time: float) -> tuple[int, int]:
        """Give the beginning and the end of the window that holds a Unix time."""
        return _window(self.period, self.zone, int(time) // _QUARTER * _QUARTER)


@dataclass(frozen=True, slots=True)
class Counter:
    """One limit: ``subject`` is whose it is (``key:7``, ``all``), ``bound`` what it allows.

    A budget has a window. Budgets, and what counts open and queued jobs, have a ``revision`` that
    grows whenever the limit changes: what was used before, and what runs, is then counted anew.
    """

    kind: CounterKind
    subject: str
    bound: int
    window: Window | None = None
    revision: int = 0
    prices: Prices = FREE

    @property
    def name(self) -> str:
        """Whose it is, and of a budget for what."""
        if self.window is None:
            return self.subject
        return f"{self.subject}:{self.window.period}:{self.window.zone}"

    def row_at(self, time: float) -> dict[str, Any]:
        """Give the form that the scripts read."""
        row: dict[str, Any] = {"kind": self.kind, "name": self.name, "bound": self.bound}
        if self.kind in _COUNTING_OLDER_JOBS:
            row["revision"] = self.revision
        if self.window is not None:
            row["from"], row["to"] = self.window.around(time)
        if self.kind is CounterKind.MONEY:
            row |= self.prices._asdict()
        return row


# An answer without a bound gets what its limits leave; where that is less it waits for more.
LEAST_ANSWER = 256


class JobNeed(NamedTuple):
    """What a job takes: ``completion`` None is as much as there is ``room`` for, or is left."""

    id: str
    prompt: int
    completion: int | None
    room: int


class Stake(NamedTuple):
    """What a job may use at most, and whose limits count it: should there be new ones."""

    prompt: int
    completion: int
    subjects: tuple[str, ...]

    def __str__(self) -> str:
        """Give the form that the scripts read."""
        return " ".join((f"{self.prompt} {self.completion}", *self.subjects))


@dataclass(frozen=True, slots=True)
class Meter:
    """What one request takes, and of what. ``seconds`` is how long its jobs may take.

    An answer without a bound gets what is left, if that is ``least`` at least.
    """

    request: str
    counters: tuple[Counter, ...]
    jobs: tuple[JobNeed, ...] = ()
    seconds: float = 0.0
    least: int = 0

    def text_at(self, time: float) -> bytes:
        """Give the form that the scripts read, with windows around a time."""
        jobs = [(id_, prompt, -1 if n is None else n, room) for id_, prompt, n, room in self.jobs]
        document = {
            "request": self.request,
            "seconds": self.seconds,
            "least": self.least,
            "jobs": jobs,
            "counters": [counter.row_at(time) for counter in self.counters],
        }
        return _encoder.encode(document)


class Reading(NamedTuple):
    """What is left of a counter, and in how many seconds all of it is there again."""

    counter: Counter
    left: int
    reset_seconds: float


class LimitReached(EngineError):
    """A request that does not fit into what is left. ``readings`` are those of all its limits.

    ``is_passing`` tells that running requests hold what is lacking, and may give some back.
    """

    def __init__(
        self,
        counter: Counter,
        *,
        wait_seconds: float,
        is_passing: bool,
        readings: tuple[Reading, ...],
    ) -> None:
        is_budget = counter.window is not None and not is_passing
        code = ErrorCode.INSUFFICIENT_QUOTA if is_budget else ErrorCode.RATE_LIMIT_EXCEEDED
        super().__init__(
            code,
            f"A limit is reached ({counter.kind} of {counter.subject}).",
            is_retryable=True,
            retry_after=wait_seconds,
        )
        self.counter = counter
        self.is_passing = is_passing
        self.readings = readings


ReadSpent = Callable[[Counter, int], Awaitable[int]]
"""Asks the ledger what a budget's subject has used since a time: tokens, or money."""
_QUARTER = 15 * 60
"""Days begin with a quarter of an hour of the world's time, in every zone there is."""
Run = Callable[[str, Sequence[Any]], Awaitable[Any]]


async def no_ledger(counter: Counter, since: int) -> int:
    """Say that nothing was used: where nobody keeps a ledger."""
    return 0


class Metering:
    """Runs scripts that take what a meter says, and tells them what they cannot know."""

    def __init__(self, run: Run, read_spent: ReadSpent) -> None:
        self._run = run
        self._read_spent = read_spent
        # The server's time as last heard: windows are around it, whatever the clock here says.
        self._time = 0.0

    async def admit(self, meter: Meter) -> tuple[Reading, ...]:
        """Count a request that has no jobs; raises LimitReached."""
        _, readings = await self.run("admit", (), meter)
        return readings

    async def run(
        self, name: str, arguments: Sequence[Any], meter: Meter | None
    ) -> tuple[list[Any], tuple[Reading, ...]]:
        """Run a script whose last argument is the meter, and whose answer ends with its readings.

        Raises LimitReached.
        """
        if meter is None or not meter.counters:
            return await self._run(name, (*arguments, b"")), ()
        for _ in range(MAX_TRIES):
            answer = await self._run(name, (*arguments, meter.text_at(self._time)))
            match answer:
                case [b"window", time]:
                    self._time = float(time)
                case [b"unknown", found]:
                    await self._restore(meter, found)
                case [b"limited", index, wait_ms, is_passing, states]:
                    raise LimitReached(
                        meter.counters[index],
                        wait_seconds=wait_ms / 1000,
                        is_passing=bool(is_passing),
                        readings=_read(meter, states),
                    )
                case [*_, states]:
                    return answer, _read(meter, states)
        raise EngineError(
            ErrorCode.BROKER_UNAVAILABLE,
            "The service could not tell what is left of your budget. Please try again.",
            is_retryable=True,
        )

    async def _restore(self, meter: Meter, found: Sequence[Any]) -> None:
        """Tell the server what the ledger says of budgets that it knows nothing of."""
        # Other requests may learn meanwhile that another window has begun.
        time = self._time
        for index, known in zip(found[::2], found[1::2], strict=True):
            counter = meter.counters[index]
            assert counter.window is not None
            begins, _ = counter.window.around(time)
            used = await self._read_spent(counter, begins)
            row = _encoder.encode(counter.row_at(time))
            await self._run("restore", (row, known, used))


def read_refused(redis: SyncRedis, budgets: Mapping[str, tuple[int, int]]) -> set[str]:
    """Tell which budgets, by the names of their counters, have refused a request in a window.

    They are given with the beginnings of their windows, and the revisions of their limits.
    """
    if not budgets:
        return set()
    with redis.pipeline(transaction=False) as pipeline:
        for name in budgets:
            pipeline.hmget(keys.counter_key(name), "from", "refused")
        found = pipeline.execute()
    now = zip(budgets.items(), found, strict=True)
    return {name for (name, one), told in now if None not in told and one == tuple(map(int, told))}


def _read(meter: Meter, states: Sequence[int]) -> tuple[Reading, ...]:
    if not states:
        return ()  # refused for something else, or known already
    pairs = zip(states[::2], states[1::2], strict=True)
    return tuple(
        Reading(counter, left, reset_ms / 1000)
        for counter, (left, reset_ms) in zip(meter.counters, pairs, strict=True)
    )
