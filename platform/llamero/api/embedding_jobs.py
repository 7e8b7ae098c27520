"""Tokens to vectors: one job sent, its rows gathered in the order of their inputs."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from inference.protocol.events import Done, Failed, Started, Vectors
from inference.protocol.jobs import EUCLIDEAN, EmbeddingJob
from llamero import dispatch
from llamero.accounts.callers import Caller
from llamero.api.errors import from_failed
from llamero.api.run import GenerationRun
from llamero.api.submission import submit_embedding
from llamero.errors import LlameroError
from models_registry.selectors import ServedModel


@dataclass(slots=True)
class VectorRows:
    """The rows of each input, as base64 of little-endian float32; one unless nothing is pooled.

    A text may hold several rows, and those of one input be in several texts.
    """

    num_dimensions: int = 0
    texts: list[list[str]] = field(default_factory=list)

    def restart(self) -> None:
        """Forget what was told: a replica was lost, and another one begins again."""
        self.texts = [[] for _ in self.texts]

    def add(self, event: Vectors) -> None:
        """Take the rows of an event."""
        self.num_dimensions = event.dimensions
        for index, text in enumerate(event.vectors, event.first_index):
            self.texts[index].append(text)


async def compute_vectors(
    *,
    served: ServedModel,
    inputs: Sequence[tuple[int, ...]],
    caller: Caller,
    norm: int = EUCLIDEAN,
    num_dimensions: int = 0,
) -> VectorRows:
    """Compute inputs; raises LlameroError or EngineError. A cancelled caller stops the job."""
    dispatcher = dispatch.get_dispatcher()
    job = EmbeddingJob(
        id=secrets.token_hex(12),
        deployment=served.deployment,
        owner=caller.owner,
        gateway=dispatcher.gateway_id,
        inputs=tuple(inputs),
        deadline=time.time() + served.profile.job_timeout_seconds,
        norm=norm,
        num_dimensions=num_dimensions,
        priority=caller.priority,
    )
    stream = await submit_embedding(job, served, caller)
    return await _gather(GenerationRun([stream]), len(inputs))


async def _gather(run: GenerationRun, num_inputs: int) -> VectorRows:
    rows = VectorRows(texts=[[] for _ in range(num_inputs)])
    try:
        async for _, event in run:
            match event:
                case Started():
                    rows.restart()
                case Vectors():
                    rows.add(event)
                case Failed():
                    raise from_failed(event)
                case Done():
                    break
    finally:
        await run.close()
    if not all(rows.texts):
        raise LlameroError(500, "internal_error", "The worker returned too few vectors.")
    return rows
