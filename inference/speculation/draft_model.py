"""How would a smaller model of the same vocabulary go on?"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from inference.backend.base import Backend, DecodeError, Row, Slice
from inference.speculation.drafter import NO_GUESS, Guess, Want

logger = logging.getLogger(__name__)

_MAX_FAILURES = 3
_SHORT = 2
_LEARNING = 0.1


@dataclass(slots=True)
class _Reader:
    """How far the small model has read a sequence: ``read`` is what its cells hold.

    The first ``num_true`` of them are known to be the sequence's own; guesses may follow.
    """

    tokens: list[int]
    read: list[int]
    num_true: int = 0


@dataclass(slots=True)
class _Draft:
    """Guesses in the making for one slot."""

    want: Want
    reader: _Reader
    found: list[int] = field(default_factory=list)


class DraftModel:
    """Lets a small model guess for all slots, one batch per guess; implements Drafter.

    Its context has the same slots as the large model's. Prompts are read ``bite`` tokens at a
    time beside the steps that want guesses; a sequence gets none until all of it is read.
    """

    is_free = False
    bounds: tuple[int, ...] = ()
    priors: tuple[float, ...] = (0.7,)

    def __init__(
        self,
        backend: Backend,
        *,
        num_vocab: int,
        bite: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.round_seconds = 0.0
        self._backend, self._num_vocab, self._bite, self._clock = backend, num_vocab, bite, clock
        self._context_length = backend.model.facts().context_length
        self._readers: dict[int, _Reader] = {}
        self._cells: dict[int, list[int]] = {}
        self._num_failures = 0

    def open(self, slot: int, tokens: list[int]) -> None:
        """Attend to another sequence; what the slot's cells have in common with it stays."""
        self.close(slot)
        self._readers[slot] = _Reader(tokens, self._cells.pop(slot, []))

    def close(self, slot: int) -> None:
        """Stop to attend to a slot; its cells may serve the next sequence there."""
        reader = self._readers.pop(slot, None)
        if reader is not None:
            self._cells[slot] = reader.read

    def draft(self, wants: Sequence[Want]) -> list[Guess]:
        """Guess greedily, in as many batches as the longest guess has tokens."""
        if self._num_failures >= _MAX_FAILURES:
            return [NO_GUESS] * len(wants)
        drafts = [_Draft(want, self._readers[want.slot]) for want in wants]
        try:
            open_drafts = self._read([draft for draft in drafts if self._has_room(draft)])
            while open_drafts:
                open_drafts = self._guess(open_drafts)
        except DecodeError as error:
            self._start_over(error)
            return [NO_GUESS] * len(wants)
        return [Guess(tuple(draft.found)) for draft in drafts]

    def close_all(self) -> None:
        """Free the small model's context."""
        self._readers.clear()
        self._backend.close()

    def _has_room(self, draft: _Draft) -> bool:
        return len(draft.reader.tokens) + draft.want.num_tokens <= self._context_length

    def _read(self, drafts: Sequence[_Draft]) -> list[_Draft]:
        """Read what is new of the sequences; gives the drafts that want more than one guess."""
        room = self._bite
        slices, ready = [], []
        for draft in drafts:
            self._forget_wrong_guesses(draft)
            reader, start = draft.reader, len(draft.reader.read)
            bite = reader.tokens[start : start + room]
            room -= len(bite)
            if not bite:
                continue
            reader.read += bite
            is_read = len(reader.read) == len(reader.tokens)
            slices.append(Slice(draft.want.slot, start, bite, int(is_read)))
            if is_read:
                ready.append(draft)
        return self._compute(slices, ready)

    def _guess(self, drafts: Sequence[_Draft]) -> list[_Draft]:
        """Read the last guesses as if they were true, and guess what comes after them."""
        slices = []
        for draft in drafts:
            slices.append(Slice(draft.want.slot, len(draft.reader.read), draft.found[-1:], 1))
            draft.reader.read.append(draft.found[-1])
        return self._compute(slices, drafts)

    def _compute(self, slices: Sequence[Slice], drafts: Sequence[_Draft]) -> list[_Draft]:
        if not slices:
            return []
        started = self._clock()
        rows = self._backend.decode(slices)
        going_on = [
            draft for draft, row in zip(drafts, rows, strict=True) if self._take(draft, row)
        ]
        if all(len(piece.tokens) <= _SHORT for piece in slices):
            self._learn_time(self._clock() - started)
        return going_on

    def _take(self, draft: _Draft, row: Row) -> bool:
        """Note the most likely token; tells whether another is wanted after it."""
        token = int(row.argmax())
        if token >= self._num_vocab or _probability(row, token) < draft.want.min_likely:
            return False
        draft.found.append(token)
        return len(draft.found) < draft.want.num_tokens

    def _forget_wrong_guesses(self, draft: _Draft) -> None:
        """Drop the cells of guesses that did not come true; the last token is always read anew."""
        reader = draft.reader
        read, tokens = reader.read, reader.tokens
        end = min(len(read), len(tokens) - 1)
        at = reader.num_true
        while at < end and read[at] == tokens[at]:
            at += 1
        if at < len(read):
            at = self._backend.keep_prefix(draft.want.slot, at)
            del read[at:]
        reader.num_true = at

    def _learn_time(self, seconds: float) -> None:
        if not self.round_seconds:
            self.round_seconds = seconds
        self.round_seconds += _LEARNING * (seconds - self.round_seconds)

    def _start_over(self, error: DecodeError) -> None:
        """Empty the context after a failure; after a few, guess no more."""
        self._num_failures += 1
        logger.error("the draft model failed: %s", error)
        if self._num_failures == _MAX_FAILURES:
            logger.error("the draft model is not asked any more")
        for slot, reader in self._readers.items():
            self._backend.keep_prefix(slot, 0)
            reader.read.clear()
            reader.num_true = 0
        for slot in self._cells:
            self._backend.keep_prefix(slot, 0)
        self._cells.clear()


def _probability(row: Row, token: int) -> float:
    """Give the probability of the most likely token."""
    return float(1.0 / np.exp(row - row[token]).sum())
