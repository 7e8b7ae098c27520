"""Builders for engine tests: jobs, and an engine over the fake backend that keeps its events."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inference.backend.base import Slice
from inference.backend.fake import EOS, FIRST_BYTE, FakeBackend, FakeModel
from inference.engine.admission import admit
from inference.engine.engine import Engine
from inference.protocol.events import Done, Event, Failed, Started, TokenLogprob, Tokens
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import RuntimeProfile

FAR_DEADLINE = 4e9


def tokens_of(text: str) -> tuple[int, ...]:
    """Spell a text in the fake's tokens."""
    return tuple(FIRST_BYTE + byte for byte in text.encode())


def make_job(job_id: str = "job", prompt: str = "hello", **fields: Any) -> GenerationJob:
    """Build a job with everything filled in."""
    values: dict[str, Any] = {
        "deployment": "fake",
        "owner": "owner",
        "salt": "salt",
        "gateway": "gateway",
        "prompt_tokens": tokens_of(prompt),
        "deadline": FAR_DEADLINE,
        "max_tokens": 4,
    }
    return GenerationJob(id=job_id, **values | fields)


def say(answer: str | bytes, num_prompt: int) -> Callable[[Sequence[int]], int]:
    """Make the fake answer prompts of a known length with a text, then end."""
    data = answer.encode() if isinstance(answer, str) else answer

    def next_token(sequence: Sequence[int]) -> int:
        at = len(sequence) - num_prompt
        return FIRST_BYTE + data[at] if at < len(data) else EOS

    return next_token


class Bench:
    """An engine over a fake backend, stepped by hand."""

    def __init__(
        self,
        *,
        num_slots: int = 4,
        context_length: int = 256,
        next_token: Callable[[Sequence[int]], int] | None = None,
        fails_for: Callable[[Slice], bool] = lambda _: False,
        state_window: int | None = None,
        draft_backend: FakeBackend | None = None,
        spill_directory: Path | None = None,
        can_shift: bool = True,
        **profile: Any,
    ) -> None:
        self.now = 1000.0
        self.profile = RuntimeProfile(num_slots=num_slots, context_length=context_length, **profile)
        self.backend = FakeBackend(
            FakeModel(context_length),
            next_token=next_token,
            fails_for=fails_for,
            state_window=state_window,
            num_cells=self.profile.kv_cells if self.profile.is_kv_unified else 0,
            can_shift=can_shift,
        )
        self.events: list[tuple[str, Event]] = []
        self.num_sink_calls = 0
        self.engine = Engine(
            self.backend,
            self.profile,
            self._collect,
            clock=lambda: self.now,
            draft_backend=draft_backend,
            spill_directory=spill_directory,
        )

    def add(self, job: GenerationJob) -> None:
        """Admit a job and put it in."""
        self.engine.add(admit(job, self.backend, self.profile))

    def step(self, count: int = 1) -> None:
        """Run steps, checking the invariants after each."""
        for _ in range(count):
            self.engine.step()
            self.engine.check_integrity()

    def run(self) -> None:
        """Run until nothing is left to do."""
        for _ in range(10_000):
            if not self.engine.has_work:
                return
            self.step()
        raise AssertionError("the engine never comes to an end")

    def answer(self, job: GenerationJob) -> "Outcome":
        """Run one job to its end."""
        self.add(job)
        self.run()
        return self.outcome(job.id)

    def outcome(self, job_id: str) -> "Outcome":
        """Sum up what was told of a job."""
        return Outcome([event for other, event in self.events if other == job_id])

    def _collect(self, events: Sequence[tuple[str, Event]]) -> None:
        self.num_sink_calls += 1
        self.events.extend(events)


class Outcome:
    """The events of one job, summed up."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = list(events)

    @property
    def pieces(self) -> list[str]:
        """The pieces of text, in order."""
        return [event.text for event in self.events if isinstance(event, Tokens)]

    @property
    def text(self) -> str:
        """All text."""
        return "".join(self.pieces)

    @property
    def token_ids(self) -> list[int]:
        """All generated tokens."""
        return [
            token for event in self.events if isinstance(event, Tokens) for token in event.token_ids
        ]

    @property
    def logprobs(self) -> list[TokenLogprob]:
        """How likely each generated token was."""
        return [one for event in self.events if isinstance(event, Tokens) for one in event.logprobs]

    @property
    def started(self) -> Started:
        """The start event."""
        return next(event for event in self.events if isinstance(event, Started))

    @property
    def done(self) -> Done:
        """The good end; there must be exactly one end, and it must be last."""
        end = self._end()
        assert isinstance(end, Done), end
        return end

    @property
    def failed(self) -> Failed:
        """The bad end."""
        end = self._end()
        assert isinstance(end, Failed), end
        return end

    def _end(self) -> Event:
        ends = [event for event in self.events if isinstance(event, Done | Failed)]
        assert len(ends) == 1, self.events
        assert self.events[-1] is ends[0]
        return ends[0]
