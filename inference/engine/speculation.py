"""Which guesses does the next step judge, and what was learned from the last?"""

import logging
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from operator import attrgetter

from inference.backend.base import Backend
from inference.engine.plan import StepPlan
from inference.engine.sequence import Sequence, SequenceState
from inference.protocol.replicas import RuntimeProfile
from inference.speculation.acceptance import Acceptance
from inference.speculation.controller import Chance, Controller
from inference.speculation.draft_model import DraftModel
from inference.speculation.drafter import NO_GUESS, Drafter, Guess, Want
from inference.speculation.prompt_lookup import PromptLookup

logger = logging.getLogger(__name__)

_by_slot = attrgetter("slot")


@dataclass(slots=True)
class _Guesswork:
    """What is known of guessing for one sequence: the last guess, and where it began."""

    sequence: Sequence
    tokens: list[int]
    acceptance: Acceptance
    guess: Guess = NO_GUESS
    began_at: int = 0

    def compare(self) -> None:
        """Learn from the tokens that came since the last guess."""
        arrived = self.tokens[self.began_at :]
        for at, (token, guessed) in enumerate(zip(arrived, self.guess.tokens, strict=False)):
            self.acceptance.learn(self.guess.strength + at, is_right=token == guessed)
            if token != guessed:
                break
        if not self.guess.tokens:
            for _ in arrived:
                self.acceptance.forget()


class Speculator:
    """Gives decoding sequences guesses where they pay. Changes no text: the engine judges them."""

    def __init__(self, drafter: Drafter, profile: RuntimeProfile) -> None:
        self._drafter = drafter
        self._max_drafts = profile.num_draft_tokens
        self._controller = Controller(
            is_unified=profile.is_kv_unified,
            max_drafts_per_step=profile.max_step_rows - profile.num_slots,
        )
        self._known: dict[int, _Guesswork] = {}

    def draft(self, running: SequenceOf[Sequence]) -> None:
        """Set the guesses of the next step on each sequence that decodes."""
        self._close_ended()
        for sequence in running:
            sequence.drafts = ()
        decoding = sorted(filter(_is_drafting_time, running), key=_by_slot)
        known = [self._attend(sequence) for sequence in decoding]
        limits = [self._limit(sequence) for sequence in decoding]
        if not any(limits):
            return
        if self._drafter.is_free:
            self._guess(known, limits)
            counts = self._choose(known, [len(one.guess.tokens) for one in known])
        else:
            counts = self._choose(known, limits)
            self._guess(known, counts)
        for one, count in zip(known, counts, strict=True):
            one.sequence.drafts = one.guess.tokens[:count]

    def observe(self, plan: StepPlan, seconds: float) -> None:
        """Learn what a step took; one with prompts in it tells nothing of guesses."""
        if plan.num_prefill_tokens:
            return
        calls = [
            ([piece.sequence.slot for piece in one], [piece.num_cells for piece in one])
            for one in plan.passes
        ]
        self._controller.observe(calls, seconds)

    def close(self) -> None:
        """Free what the guesses came from."""
        self._drafter.close_all()

    def _attend(self, sequence: Sequence) -> _Guesswork:
        """Find what is known of a sequence, and learn from what came since."""
        one = self._known.get(sequence.slot)
        if one is None or one.sequence is not sequence:
            one = _Guesswork(sequence, [], Acceptance(self._drafter.bounds, self._drafter.priors))
            self._known[sequence.slot] = one
        one.compare()
        if one.tokens is not sequence.tokens:
            # New in the slot, or its context was shifted: then the list is another one.
            one.tokens = sequence.tokens
            self._drafter.open(sequence.slot, one.tokens)
        one.guess, one.began_at = NO_GUESS, len(one.tokens)
        return one

    def _close_ended(self) -> None:
        """Forget the sequences that run no more, or elsewhere."""
        for slot, one in list(self._known.items()):
            if one.sequence.state is not SequenceState.RUNNING or one.sequence.slot != slot:
                del self._known[slot]
                self._drafter.close(slot)

    def _limit(self, sequence: Sequence) -> int:
        """Count the guesses that could be of use: none beyond the end of what may be said."""
        wanted = sequence.job.num_draft_tokens
        most = self._max_drafts if wanted is None else min(wanted, self._max_drafts)
        left = sequence.limit - sequence.num_generated - 1
        return max(0, min(most, left, sequence.context_length - len(sequence.tokens)))

    def _choose(self, known: SequenceOf[_Guesswork], limits: SequenceOf[int]) -> list[int]:
        chances = [
            Chance(
                one.sequence.slot,
                limit,
                one.acceptance.rate(one.guess.strength),
                one.sequence.job.min_draft_tokens,
                one.sequence.job.min_draft_likely,
            )
            for one, limit in zip(known, limits, strict=True)
        ]
        return self._controller.choose(chances, self._drafter.round_seconds)

    def _guess(self, known: SequenceOf[_Guesswork], counts: SequenceOf[int]) -> None:
        """Have guesses made for those that want some."""
        asked = [(one, count) for one, count in zip(known, counts, strict=True) if count]
        wants = [
            Want(one.sequence.slot, count, one.sequence.job.min_draft_likely)
            for one, count in asked
        ]
        for (one, _), guess in zip(asked, self._drafter.draft(wants), strict=True):
            one.guess = guess


def _is_drafting_time(sequence: Sequence) -> bool:
    """Whether the next step computes the last token of a sequence, so that guesses may follow."""
    return sequence.is_decoding and sequence.num_pending == 1


def open_speculator(
    backend: Backend, profile: RuntimeProfile, draft_backend: Backend | None = None
) -> Speculator | None:
    """Make what the profile asks for, or nothing where it would do harm, and say so.

    Judging several tokens at once gives other numerics than one by one, which a deterministic
    deployment cannot have; and a wrong guess must be dropped from the cells again.
    """
    if not profile.speculation:
        return None
    if profile.is_deterministic:
        logger.warning("speculation is off: the deployment is deterministic")
        return None
    if backend.state_window is not None:
        logger.warning("speculation is off: the model cannot drop a part of a sequence")
        return None
    if draft_backend is None:
        return Speculator(PromptLookup(), profile)
    num_vocab = backend.model.facts().num_vocab
    draft_model = DraftModel(draft_backend, num_vocab=num_vocab, bite=profile.prefill_chunk)
    return Speculator(draft_model, profile)
