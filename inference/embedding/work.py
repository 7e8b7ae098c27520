"""Which inputs of which jobs go into the next batch?"""

import time
from collections import deque
from dataclasses import dataclass

from inference.protocol.jobs import EmbeddingJob

GROUP = 8
"""Inputs a job may put into a batch before it is the next job's turn."""


class EmbeddingWork:
    """A job and how far it is; owned by the embedding thread."""

    def __init__(self, job: EmbeddingJob) -> None:
        self.job = job
        self.num_done = 0
        self.num_taken = 0
        self.submitted_at = time.perf_counter()
        self.started_at = 0.0
        self.is_over = False

    @property
    def num_left(self) -> int:
        """Inputs that no batch has taken yet."""
        return len(self.job.inputs) - self.num_taken


@dataclass(slots=True)
class Share:
    """Consecutive inputs of one job in one batch."""

    work: EmbeddingWork
    first: int
    count: int

    @property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """The token ids of the inputs."""
        return self.work.job.inputs[self.first : self.first + self.count]


def take_batch(line: deque[EmbeddingWork], max_tokens: int, max_inputs: int) -> list[Share]:
    """Fill a batch from jobs in turn, a group of inputs each; the line keeps the next turn.

    Jobs whose inputs are all taken leave the line.
    """
    shares: dict[int, Share] = {}
    room_tokens, room_inputs = max_tokens, max_inputs
    while line and room_inputs:
        work = line[0]
        taken = _take_group(work, shares, room_tokens, min(room_inputs, GROUP))
        if not taken:
            break
        room_tokens -= sum(map(len, taken))
        room_inputs -= len(taken)
        line.popleft()
        if work.num_left:
            line.append(work)
    return list(shares.values())


def _take_group(
    work: EmbeddingWork, shares: dict[int, Share], room_tokens: int, count: int
) -> tuple[tuple[int, ...], ...]:
    first = work.num_taken
    fitting = 0
    for tokens in work.job.inputs[first : first + count]:
        room_tokens -= len(tokens)
        if room_tokens < 0:
            break
        fitting += 1
    if fitting:
        share = shares.setdefault(id(work), Share(work, first, 0))
        share.count += fitting
        work.num_taken += fitting
    return work.job.inputs[first : first + fitting]
