"""Which inputs of which jobs go into the next batch?"""

from collections import deque
from dataclasses import dataclass, field

from inference.backend.base import Embedder, InputPart
from inference.protocol.jobs import EmbeddingJob

GROUP = 8
"""Inputs a job may put into a batch before it is the next job's turn."""


class EmbeddingWork:
    """A job and how far it is; owned by the embedding thread.

    Inputs before ``next_input`` are taken; of that one ``num_begun`` tokens are, as ``seq_id``.
    """

    def __init__(self, job: EmbeddingJob) -> None:
        self.job = job
        self.next_input = 0
        self.num_begun = 0
        self.seq_id = -1
        self.num_done = 0
        self.started_at = 0.0

    @property
    def is_taken(self) -> bool:
        """Whether every input was taken whole."""
        return self.next_input == len(self.job.inputs)

    @property
    def num_done_tokens(self) -> int:
        """Count the tokens of the inputs whose vectors were told."""
        return sum(map(len, self.job.inputs[: self.num_done]))


@dataclass(frozen=True, slots=True)
class Share:
    """A part of one input of a job, in one batch."""

    work: EmbeddingWork
    input: int
    part: InputPart


@dataclass(slots=True)
class Room:
    """What a context can still hold: sequences, and tokens of inputs that are not over."""

    seq_ids: list[int]
    num_cells: int
    can_split: bool
    _held: dict[int, int] = field(default_factory=dict)

    @property
    def num_held(self) -> int:
        """Count the inputs that hold a place."""
        return len(self._held)

    @classmethod
    def of(cls, embedder: Embedder) -> "Room":
        """Give the room of an empty context."""
        seq_ids = list(range(embedder.max_batch_inputs - 1, -1, -1))
        return cls(seq_ids, embedder.num_cells, embedder.can_split)

    def has_place_for(self, num_tokens: int) -> bool:
        """Tell whether an input of this length may begin."""
        return bool(self.seq_ids) and num_tokens <= self.num_cells

    def begin(self, num_tokens: int) -> int:
        """Hold place for an input; gives its sequence id."""
        seq_id = self.seq_ids.pop()
        self._held[seq_id] = num_tokens
        self.num_cells -= num_tokens
        return seq_id

    def end(self, seq_id: int) -> None:
        """Give an input's place back."""
        self.num_cells += self._held.pop(seq_id)
        self.seq_ids.append(seq_id)


def take_batch(line: deque[EmbeddingWork], room: Room, max_tokens: int) -> list[Share]:
    """Fill a batch from jobs in turn, a group of inputs each; the line keeps the next turn.

    Jobs whose inputs are all taken leave the line. An input that finds no place keeps all others
    from beginning, so that it is next, but not those that have begun from going on.
    """
    shares: list[Share] = []
    while line and max_tokens > 0:
        taken = _take_group(line[0], room, max_tokens, is_first=not shares)
        if not taken and not _bring_begun_forward(line):
            break
        max_tokens -= sum(len(share.part.tokens) for share in taken)
        shares += taken
        if taken:
            work = line.popleft()
            if not work.is_taken:
                line.append(work)
    return shares


def _take_group(work: EmbeddingWork, room: Room, max_tokens: int, *, is_first: bool) -> list[Share]:
    shares: list[Share] = []
    while len(shares) < GROUP and not work.is_taken and max_tokens > 0:
        tokens = work.job.inputs[work.next_input]
        count = len(tokens) - work.num_begun
        if count > max_tokens:
            if room.can_split:
                count = max_tokens
            elif shares or not is_first:
                break
        if not work.num_begun:
            if not room.has_place_for(len(tokens)):
                break
            work.seq_id = room.begin(len(tokens))
        shares.append(_take_part(work, tokens, count))
        max_tokens -= count
    return shares


def _take_part(work: EmbeddingWork, tokens: tuple[int, ...], count: int) -> Share:
    start, end = work.num_begun, work.num_begun + count
    part = InputPart(work.seq_id, start, tokens[start:end], is_last=end == len(tokens))
    share = Share(work, work.next_input, part)
    if part.is_last:
        work.next_input, work.num_begun, work.seq_id = work.next_input + 1, 0, -1
    else:
        work.num_begun = end
    return share


def _bring_begun_forward(line: deque[EmbeddingWork]) -> bool:
    """Put the first job with a begun input at the head; False if that changes nothing."""
    begun = next((work for work in line if work.num_begun), None)
    if begun is None or begun is line[0]:
        return False
    line.remove(begun)
    line.appendleft(begun)
    return True
