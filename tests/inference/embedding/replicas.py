"""A loaded model of any kind, its engine running, and what its jobs get."""

import base64
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from inference.protocol.events import Vectors
from inference.protocol.jobs import EmbeddingJob
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.worker.loading import LoadedEngine, build_engine
from tests.inference.engine.inbox import Inbox

Tokens = Sequence[int]


class Replica:
    """An engine at work."""

    def __init__(self, loaded: LoadedEngine, inbox: Inbox) -> None:
        self.model, self.runner, self.inbox = loaded.model, loaded.runner, inbox
        self._num_jobs = 0

    def tokenize(self, text: str) -> list[int]:
        return self.model.tokenize(text, add_special=True, parse_special=False)

    def embed_texts(self, texts: Sequence[str], **fields: Any) -> list[np.ndarray[Any, Any]]:
        return self.embed([self.tokenize(text) for text in texts], **fields)

    def embed(self, inputs: Sequence[Tokens], **fields: Any) -> list[np.ndarray[Any, Any]]:
        """Give the rows of each input."""
        job = self.submit(inputs, **fields)
        return self.collect(job)

    def submit(self, inputs: Sequence[Tokens], **fields: Any) -> EmbeddingJob:
        self._num_jobs += 1
        job = EmbeddingJob(
            id=f"job{self._num_jobs}",
            deployment="d",
            owner="o",
            gateway="g",
            inputs=tuple(map(tuple, inputs)),
            deadline=time.time() + 100,
            **fields,
        )
        self.runner.submit(job)
        return job

    def collect(self, job: EmbeddingJob) -> list[np.ndarray[Any, Any]]:
        outcome = self.inbox.wait_for_end(job.id)
        assert outcome.done.num_prompt_tokens == sum(map(len, job.inputs))
        rows: list[list[np.ndarray[Any, Any]]] = [[] for _ in job.inputs]
        for event in outcome.events:
            if isinstance(event, Vectors):
                for index, text in enumerate(event.vectors, event.first_index):
                    numbers = np.frombuffer(base64.b64decode(text), "<f4")
                    rows[index].append(numbers.reshape(-1, event.dimensions))
        return [np.concatenate(pieces) for pieces in rows]


@contextmanager
def running(path: Path, kind: ModelKind = ModelKind.EMBEDDING, **profile: Any) -> Iterator[Replica]:
    """Load a model and run its engine."""
    spec = ReplicaSpec(
        replica="r",
        deployment="d",
        model="m",
        kind=kind,
        files=(str(path),),
        sha256=("",),
        profile=RuntimeProfile(**profile),
    )
    inbox = Inbox()
    loaded = build_engine(spec, inbox, lambda _: None)
    loaded.runner.start()
    try:
        yield Replica(loaded, inbox)
    finally:
        loaded.runner.stop()
