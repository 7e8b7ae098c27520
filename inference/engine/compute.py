"""How does a planned step reach the backend, and who pays when it fails?"""

import logging
from collections.abc import Sequence as SequenceOf

from inference.backend.base import NO_CELLS, Backend, DecodeError, Rows
from inference.cache.prefix_cache import PrefixCache
from inference.engine.plan import Pass, Piece, StepPlan
from inference.engine.pressure import Pressure
from inference.engine.roster import Roster
from inference.engine.sequence import Sequence
from inference.engine.settle import Settler
from inference.protocol.errors import ErrorCode
from inference.protocol.jobs import Loras

logger = logging.getLogger(__name__)

_MAX_FAILURES = 3


class Computer:
    """Carries out the calls of a plan: the one place where sequences move on."""

    def __init__(
        self,
        backend: Backend,
        cache: PrefixCache,
        roster: Roster,
        settler: Settler,
        pressure: Pressure,
    ) -> None:
        self._backend, self._cache = backend, cache
        self._roster, self._settler, self._pressure = roster, settler, pressure
        self._loras: Loras = ()

    def compute(self, plan: StepPlan) -> None:
        """Compute all pieces and settle them; what a failure leaves out is planned again."""
        for pieces in self._order(plan.passes):
            try:
                rows = self._decode(pieces)
            except DecodeError as error:
                logger.warning("a call for %d sequences failed: %s", len(pieces), error)
                if error.code == NO_CELLS:
                    self._pressure.relieve()
                    return
                self._compute_one_by_one(pieces)
                continue
            self._apply(pieces, rows)

    def _order(self, passes: SequenceOf[Pass]) -> SequenceOf[Pass]:
        """Begin with the adapters that are in use: to change them costs a part of a step."""
        if len(passes) == 1:
            return passes
        return sorted(passes, key=lambda pieces: _adapters_of(pieces) != self._loras)

    def _decode(self, pieces: Pass) -> Rows:
        """Compute pieces of the same adapters in one call."""
        self._loras = _adapters_of(pieces)
        self._backend.use_adapters(self._loras)
        return self._backend.decode([piece.to_slice() for piece in pieces])

    def _apply(self, pieces: Pass, rows: Rows) -> None:
        """Note what was computed, and give each sequence its rows."""
        at = 0
        for piece in pieces:
            sequence = piece.sequence
            sequence.num_computed += piece.num_tokens
            self._cache.advance(sequence.slot, sequence.num_computed)
            self._settler.settle(piece, rows[at : at + piece.num_rows])
            at += piece.num_rows

    def _compute_one_by_one(self, pieces: Pass) -> None:
        """Retry a failed call sequence by sequence, so that only the culprit fails.

        The call may have computed a part before it failed: each sequence first drops what is
        beyond its count, or where the model cannot do that, all it has.
        """
        for piece in pieces:
            sequence = piece.sequence
            kept = self._backend.keep_prefix(sequence.slot, sequence.num_computed)
            if kept == sequence.num_computed:
                self._compute_alone(piece)
            else:
                self._start_over(sequence)

    def _compute_alone(self, piece: Piece) -> None:
        try:
            rows = self._decode((piece,))
        except DecodeError as error:
            logger.error("job %s cannot be computed: %s", piece.sequence.job.id, error)
            self._fail(piece.sequence)
            return
        self._apply((piece,), rows)

    def _start_over(self, sequence: Sequence) -> None:
        """Have a sequence compute again all it has, unless that has been of no use."""
        sequence.num_failures += 1
        if sequence.num_failures > _MAX_FAILURES:
            self._fail(sequence)
            return
        sequence.rewind()
        self._cache.advance(sequence.slot, 0)

    def _fail(self, sequence: Sequence) -> None:
        self._roster.fail(sequence, ErrorCode.ENGINE_FAILED, "The model failed on this request.")


def _adapters_of(pieces: Pass) -> Loras:
    return pieces[0].sequence.job.loras or ()
