"""A batcher over the fake embedder, stepped by hand, and jobs for it."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from inference.backend.fake import FakeEmbedder, FakeModel
from inference.embedding.batcher import Batcher
from inference.protocol.events import Event, Vectors
from inference.protocol.jobs import EmbeddingJob
from tests.inference.engine.fakes import FAR_DEADLINE

Inputs = Sequence[Sequence[int]]
Numbers = np.ndarray[Any, Any]


def make_embedding_job(
    job_id: str = "job", inputs: Inputs = ((3, 4),), **fields: Any
) -> EmbeddingJob:
    """Build a job with everything filled in."""
    return EmbeddingJob(
        id=job_id,
        deployment="d",
        owner="o",
        gateway="g",
        inputs=tuple(map(tuple, inputs)),
        deadline=fields.pop("deadline", FAR_DEADLINE),
        **fields,
    )


class Bench:
    """A batcher that keeps its events; ``fake`` goes to the embedder."""

    def __init__(self, context_length: int = 512, **fake: Any) -> None:
        self.now = 1000.0
        self.events: list[tuple[str, Event]] = []
        self.embedder = FakeEmbedder(FakeModel(context_length), **fake)
        self.batcher = Batcher(self.embedder, self.events.extend, lambda: self.now)

    def step(self, max_tokens: int | None = None) -> None:
        """Run a step, checking the invariants after it."""
        self.batcher.step(max_tokens)
        self.batcher.check_integrity()

    def run(self, max_tokens: int | None = None) -> None:
        """Step until nothing is left."""
        while self.batcher.has_work:
            self.step(max_tokens)
        assert not self.embedder.begun

    def of(self, job_id: str) -> list[Event]:
        """List the events of a job."""
        return [event for other, event in self.events if other == job_id]

    def vectors(self, job_id: str) -> list[Numbers]:
        """Give the vectors of a job, which come in the order of its inputs."""
        told = [event for event in self.of(job_id) if isinstance(event, Vectors)]
        assert [event.first_index for event in told] == list(
            np.cumsum([0, *(len(event.vectors) for event in told)])[:-1]
        )
        return [read_rows(text, 8)[0] for event in told for text in event.vectors]


def read_rows(text: str, num_columns: int) -> Numbers:
    """Read the rows of an event's text."""
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(-1, num_columns)
