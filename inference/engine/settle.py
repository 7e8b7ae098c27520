"""What comes of the rows of a step? Prompt log-probabilities, tokens, and the end."""

import logging
from collections.abc import Callable

from inference.backend.base import Backend, Row, Rows
from inference.backend.logprobs import first_token, rows_to_logprobs
from inference.cache.prefix_cache import PrefixCache
from inference.engine.counters import Counters
from inference.engine.ending import drain_tokens
from inference.engine.plan import Piece
from inference.engine.roster import Roster
from inference.engine.sequence import Sequence
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import FinishReason, Progress, PromptLogprobs
from inference.protocol.jobs import blamed_field

logger = logging.getLogger(__name__)
# A job that wants its answer whole still tells now and then: another replica can go on from there.
WHOLE_TOKENS = 32


class Settler:
    """Gives each sequence what its piece of a step computed, and tells what came of it."""

    def __init__(
        self,
        backend: Backend,
        cache: PrefixCache,
        roster: Roster,
        counters: Counters,
        clock: Callable[[], float],
    ) -> None:
        self._backend, self._model, self._cache = backend, backend.model, cache
        self._roster, self._counters, self._clock = roster, counters, clock

    def settle(self, piece: Piece, rows: Rows) -> None:
        """Use the rows of a computed piece: those of its last ``piece.num_rows`` tokens.

        ``num_computed`` counts the piece already. Whatever one sequence does wrong costs itself.
        """
        sequence = piece.sequence
        try:
            if not sequence.num_generated:
                self._tell_prompt(piece, rows)
            if not sequence.num_pending and sequence.limit <= 0:
                self._roster.finish(sequence, FinishReason.LENGTH)
            elif not sequence.num_pending:
                self._sample(sequence, piece.drafts, rows[-1 - len(piece.drafts) :])
            elif len(rows) and sequence.is_redrawing:
                self._redraw(sequence, rows[-1])
        except EngineError as error:
            param = blamed_field(error, sequence.job)
            self._roster.fail(sequence, error.code, error.message, param=param)
        except Exception:  # whatever one sequence does must not end the others
            logger.exception("job %s cannot be sampled", sequence.job.id)
            self._roster.fail(
                sequence, ErrorCode.INTERNAL_ERROR, "The request failed while sampling."
            )

    def _tell_prompt(self, piece: Piece, rows: Rows) -> None:
        """Tell how far a prompt is that takes more than one step, and how likely it was."""
        sequence = piece.sequence
        is_sliced = piece.num_tokens < sequence.num_prompt - sequence.num_cached
        if is_sliced or sequence.job.is_timed:
            time_ms = (self._clock() - sequence.started_at) * 1000
            progress = Progress(sequence.num_computed, sequence.num_prompt, time_ms)
            self._roster.tell(sequence, progress)
        if sequence.next_prompt_row < sequence.num_computed:
            self._tell_prompt_logprobs(sequence, rows)

    def _tell_prompt_logprobs(self, sequence: Sequence, rows: Rows) -> None:
        """Tell how likely the tokens behind the computed ones were: a row judges the next token."""
        first = sequence.next_prompt_row + 1
        judged = sequence.tokens[first : min(sequence.num_computed + 1, sequence.num_prompt)]
        num_top = sequence.job.num_prompt_logprobs or 0
        logprobs = tuple(rows_to_logprobs(self._model, rows[: len(judged)], judged, num_top))
        if first == 1:
            first, logprobs = 0, (first_token(self._model, sequence.tokens[0]), *logprobs)
        sequence.next_prompt_row = sequence.num_computed
        if logprobs:
            self._roster.tell(sequence, PromptLogprobs(first, logprobs))

    def _redraw(self, sequence: Sequence, row: Row) -> None:
        """Have the sampler choose again what was told: then it stands where it stood before.

        Where it chooses otherwise, another machine computed that, and what was told stays true.
        """
        emitted = sequence.job.emitted_tokens
        choice = sequence.sampler.sample(row)
        if choice.token == emitted[sequence.num_redrawn]:
            sequence.num_redrawn += 1
            return
        logger.warning("job %s goes on from tokens that are not its own here", sequence.job.id)
        sequence.sampler.close()
        sequence.sampler = self._backend.open_sampler(sequence.job)
        for token in emitted:
            sequence.sampler.accept(token)
        sequence.num_redrawn = len(emitted)

    def _sample(self, sequence: Sequence, drafts: tuple[int, ...], rows: Rows) -> None:
        """Choose the next token, and one more behind each guess that was right; tell them.

        Each choice is the sampler's own, made from the row it would have seen without guesses: a
        guess decides nothing, it only has the next row there already.
        """
        num_right = 0
        while True:
            token, reason = self._choose(sequence, rows[num_right])
            if reason is not None or num_right == len(drafts) or token != drafts[num_right]:
                break
            num_right += 1
        if drafts:
            self._drop_wrong(sequence, len(drafts), num_right)
        if reason is not None:
            self._roster.finish(sequence, reason)
        elif sequence.job.stream or len(sequence.unsent_tokens) >= WHOLE_TOKENS:
            for event in drain_tokens(sequence, self._clock()):
                self._roster.tell(sequence, event)

    def _choose(self, sequence: Sequence, row: Row) -> tuple[int, FinishReason | None]:
        """Choose a token; tells why the sequence ends with it, if it does."""
        choice = sequence.sampler.sample(row)
        is_end = choice.is_end or self._model.is_end_of_generation(choice.token)
        data = b"" if is_end else sequence.spell(choice.token, self._model)
        if not sequence.first_token_at:
            sequence.first_token_at = self._clock()
        text = sequence.append(choice.token, choice.logprob, data)
        self._counters.num_decoded_tokens += 1
        reason = sequence.finish_reason(is_end=is_end)
        if reason is None and "\n" in text and self._is_overdue(sequence):
            reason = FinishReason.LENGTH
        return choice.token, reason

    def _is_overdue(self, sequence: Sequence) -> bool:
        """Tell whether a sequence has had its time, and ends with its line."""
        limit = sequence.job.line_limit_ms
        return limit > 0 and (self._clock() - sequence.first_token_at) * 1000 > limit

    def _drop_wrong(self, sequence: Sequence, num_drafted: int, num_right: int) -> None:
        """Keep the cells of the guesses that were right, and drop those of the others."""
        sequence.num_drafted += num_drafted
        sequence.num_accepted += num_right
        self._counters.count_draft(num_drafted, num_right)
        sequence.num_computed += num_right
        if num_right < num_drafted:
            kept = self._backend.keep_prefix(sequence.slot, sequence.num_computed)
            if kept != sequence.num_computed:
                logger.warning("job %s must be computed again after a wrong guess", sequence.job.id)
                sequence.rewind()
        self._cache.advance(sequence.slot, sequence.num_computed)
