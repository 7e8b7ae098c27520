"""A data plane without a model: jobs are recorded and answered by a script of events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import TERMINAL, Done, Event, FinishReason, Started, Tokens
from inference.protocol.replicas import (
    ModelFacts,
    ModelKind,
    ReplicaState,
    ReplicaStatus,
    RuntimeProfile,
    SlotStats,
)
from inference.protocol.text import (
    Detokenize,
    Detokenized,
    JoinPairs,
    RenderChat,
    Rendered,
    Tokenize,
    Tokenized,
)
from inference.relay.endings import CANCELLED_EVENT
from inference.relay.gateway import SpareView
from inference.relay.limits import Meter, Reading, Stake
from llamero.dispatch.dispatcher import Cancellation
from models_registry.selectors import ServedModel
from tests.llamero.api.fake_answers import FakeAnswers
from tests.llamero.api.fake_conversations import FakeConversations
from tests.llamero.played_stream import PlayedStream, count_reasoning

NUM_VOCAB = 49152
CONTEXT = 256
FACTS = ModelFacts(
    num_vocab=NUM_VOCAB,
    context_length=CONTEXT,
    num_embd=4,
    num_dimensions=4,
    pooling="mean",
    num_prefix_tokens=1,
    bos_token_id=1,
    eos_token_id=2,
    end_tokens=(2,),
    bos_token="<s>",
    eos_token="</s>",
)
Script = Callable[[Any], Sequence[Any]]


def make_served(
    name: str, kind: ModelKind = ModelKind.CHAT, pk: int = 1, **changes: Any
) -> ServedModel:
    """Make a served model whose deployment has its name."""
    fields: dict[str, Any] = {
        "id": name,
        "deployment": name,
        "kind": kind,
        "created": 1700000000,
        "owned_by": "llamero",
        "profile": RuntimeProfile(context_length=CONTEXT),
        "facts": {"architecture": "llama", "num_params": 7},
        "model_pk": pk,
    }
    return ServedModel(**(fields | changes))


def say(*pieces: str, reason: FinishReason = FinishReason.EOS) -> list[Event]:
    """Make the events of a job that says these pieces, a token each."""
    events: list[Event] = [Started(slot=3, num_cached_tokens=2)]
    events += [Tokens(piece, (100 + i,)) for i, piece in enumerate(pieces)]
    return [*events, Done(reason, 5, 2, len(pieces))]


class FakeStream(PlayedStream):
    """Plays a script; an asyncio.Event in it is waited for."""

    def __init__(self, script: Sequence[Any]) -> None:
        self._script = script
        self.is_closed = False
        self.is_cancelled = False

    async def play(self) -> AsyncIterator[Event]:
        for item in self._script:
            if isinstance(item, asyncio.Event):
                await item.wait()
            else:
                yield item

    async def cancel(self) -> None:
        self.is_cancelled = True

    async def close(self) -> None:
        self.is_closed = True
        if self._task is not None:
            self._task.cancel()


class FakeWrongKeys:
    """Counts the same for all addresses."""

    number = 0

    async def count(self, place: str) -> tuple[int, float]:
        self.number += 1
        return self.number, 42.0


class FakeDispatcher:
    """Answers like the real one. Tokens are code points; ``script`` makes the events of a job."""

    gateway_id = "fake"

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.answers = FakeAnswers()
        self.conversations = FakeConversations()
        self.wrong_keys = FakeWrongKeys()
        self.kept: dict[tuple[str, str], bytes] = {}
        self.cancelled: list[str] = []
        self.cancellation = Cancellation.STOPPED
        self.streams: list[FakeStream] = []
        self.questions: list[Any] = []
        self.script: Script = lambda job: say("Hel", "lo")
        self.chat_template = ""
        self.prompt_end = ""
        self.facts_error: EngineError | None = None
        self.submit_error: EngineError | None = None
        self.admit_error: EngineError | None = None
        self.meters: list[Meter | None] = []
        self.admitted: list[Meter] = []
        self.left: list[Any] = []
        self.readings: tuple[Reading, ...] = ()
        self.ask_error: EngineError | None = None
        self.num_accepted = 1_000_000
        self.num_queued = 0
        self.num_slots = 8
        self.trouble = ""
        self.model_facts: ModelFacts | None = None
        self.statuses: tuple[ReplicaStatus, ...] = (make_status("smol"), make_status("mini"))

    async def ask(self, deployment: str, question: Any, *, timeout: float = 10) -> Any:
        self._check()
        self.questions.append(question)
        if self.ask_error:
            raise self.ask_error
        match question:
            case Tokenize():
                ids = tuple(_encode(text, question.add_special) for text in question.texts)
                pieces = tuple(
                    tuple(chr(i).encode().decode("latin-1") for i in line) for line in ids
                )
                return Tokenized(tokens=ids, pieces=pieces if question.with_pieces else ())
            case JoinPairs():
                pairs = (f"{question.query}|{text}" for text in question.documents)
                limit = question.max_tokens or None
                return Tokenized(tokens=tuple(_encode(pair, True)[:limit] for pair in pairs))
            case Detokenize():
                return Detokenized(text="".join(map(chr, question.tokens)))
            case RenderChat():
                prompt = "".join(f"{m['role']}:{m['content']}\n" for m in question.messages)
                prompt += self.prompt_end
                return Rendered(prompt=prompt, tokens=_encode(prompt, False))
        raise AssertionError(question)

    async def facts(self, deployment: str, *, waits: bool = True) -> ModelFacts:
        self._check()
        facts = self.model_facts or FACTS
        return msgspec.structs.replace(facts, chat_template=self.chat_template)

    async def num_waiting(self, deployment: str) -> int:
        self._check()
        return self.num_queued

    async def replicas(self, deployment: str | None = None) -> tuple[ReplicaStatus, ...]:
        self._check()
        return tuple(one for one in self.statuses if deployment in (None, one.deployment))

    async def spare(self, deployment: str) -> SpareView:
        self._check()
        num_busy = sum(not stream.is_closed for stream in self.streams)
        return SpareView(self.num_slots, max(0, self.num_slots - num_busy), self.num_queued)

    async def check_link(self) -> None:
        self._check()

    async def beating_replicas(self) -> tuple[ReplicaStatus, ...]:
        return await self.replicas()

    async def find_running(self, job_ids: Sequence[str]) -> frozenset[str]:
        self._check()
        return frozenset(job_ids) - set(self.cancelled)

    async def submit(
        self,
        job: Any,
        *,
        max_queue: int,
        max_owner_queue: int,
        bill: bytes = b"",
        stake: Stake | None = None,
        meter: Meter | None = None,
    ) -> FakeStream:
        self._check()
        self.meters.append(meter)
        if self.submit_error is not None and len(self.jobs) >= self.num_accepted:
            raise self.submit_error
        self.jobs.append(job)
        stream = FakeStream(count_reasoning(job, self.script(job)))
        self.streams.append(stream)
        stream.readings = self.readings
        return stream

    async def admit(self, meter: Meter) -> tuple[Reading, ...]:
        self.admitted.append(meter)
        if self.admit_error is not None:
            raise self.admit_error
        return self.readings

    def leave(self, jobs: Sequence[Any]) -> None:
        self.left += jobs

    async def keep_run(self, run: str, owner: str, document: bytes, deadline: float) -> None:
        self.kept[owner, run] = document

    async def find_run(self, run: str, owner: str) -> bytes | None:
        self._check()
        return self.kept.get((owner, run))

    async def attach(self, job_id: str, owner: str) -> FakeStream | None:
        known = (job for job in self.jobs if (job.id, job.owner) == (job_id, owner))
        job = next((job for job in known if job.is_durable), None)
        if job is None:
            return None
        stream = FakeStream(count_reasoning(job, self.script(job)))
        self.streams.append(stream)
        return stream

    async def look(self, job_id: str) -> str:
        self._check()
        if all(job.id != job_id for job in self.jobs):
            return ""
        told = await self.history(job_id)
        return "done" if told and isinstance(told[-1], TERMINAL) else "running"

    async def history(self, job_id: str) -> list[Event]:
        """Give what a job told up to the first moment that is still waited for."""
        job = next((job for job in self.jobs if job.id == job_id), None)
        told: list[Event] = []
        for item in count_reasoning(job, self.script(job)) if job else ():
            if not isinstance(item, asyncio.Event):
                told.append(item)
            elif not item.is_set():
                return [*told, CANCELLED_EVENT] if job_id in self.cancelled else told
        return told

    async def cancel_jobs(self, jobs: Sequence[str]) -> Cancellation:
        self.cancelled += jobs
        if not any(job.id in jobs for job in self.jobs):
            return Cancellation.UNKNOWN
        return self.cancellation

    def _check(self) -> None:
        if self.facts_error is not None:
            raise self.facts_error


def make_status(deployment: str, state: ReplicaState = ReplicaState.READY) -> ReplicaStatus:
    """Make the heartbeat of a replica with a busy and an idle slot."""
    return ReplicaStatus(
        replica=f"{deployment}-1",
        deployment=deployment,
        node="here",
        state=state,
        num_slots=2,
        facts=FACTS,
        slots=(
            SlotStats(id=0, job="job-of-another", owner="key:9", num_decoded=4),
            SlotStats(id=1),
        ),
    )


def engine_error(code: ErrorCode) -> EngineError:
    """Make an error of the data plane."""
    return EngineError(code, f"Because of {code.value}.", is_retryable=True)


def _encode(text: str, add_special: bool) -> tuple[int, ...]:
    ids = tuple(ord(letter) for letter in text)
    return (1, *ids) if add_special and ids else ids
