"""Where does one job stand?"""

from collections.abc import Sequence as SequenceOf
from enum import Enum, auto

from inference.backend.base import Sampler
from inference.cache.prefix_cache import Match
from inference.protocol.events import FinishReason, TokenLogprob
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import SlotStats
from inference.text.detokenizer import Detokenizer
from inference.text.stop_matcher import StopMatcher


class SequenceState(Enum):
    """waiting -> held -> running -> finished; any -> finished. Held: seated, not yet computing."""

    WAITING = auto()
    HELD = auto()
    RUNNING = auto()
    FINISHED = auto()


class Sequence:
    """One job on its way through the engine; owned by the engine thread.

    ``num_computed`` chases ``num_tokens``, and nothing else tells what is left to do. The first
    ``num_prefill`` tokens come in slices as large as the step allows, what follows as it is
    sampled. ``drafts`` are guesses at the next tokens: in no way part of the sequence until the
    model agrees. ``next_prompt_row`` is the first position whose row the job still wants for the
    log-probabilities of its prompt; ``num_prompt`` where it wants none.
    """

    def __init__(
        self, job: GenerationJob, prompt: SequenceOf[int], sampler: Sampler, context_length: int
    ) -> None:
        self.job = job
        self.sampler = sampler
        self.tokens = list(prompt)
        self.num_prompt = len(self.tokens)
        self.num_prefill = self.num_prompt
        self.num_computed = 0
        self.next_prompt_row = 0 if job.num_prompt_logprobs is not None else self.num_prompt
        self.drafts: tuple[int, ...] = ()
        self.num_cached = 0
        self.slot = -1
        self.state = SequenceState.WAITING
        self.detokenizer = Detokenizer()
        self.stops = StopMatcher(job.stop)
        self.limit, self.is_limit_context = _token_limit(job, self.num_prompt, context_length)
        self.unsent_text: list[str] = []
        self.unsent_logprobs: list[TokenLogprob] = []
        self.num_sent = 0
        self.awaits: Match | None = None
        self.started_at = 0.0
        self.first_token_at = 0.0

    @property
    def num_tokens(self) -> int:
        """Prompt and generated tokens together."""
        return len(self.tokens)

    @property
    def num_pending(self) -> int:
        """How many tokens wait to be computed."""
        return len(self.tokens) - self.num_computed

    @property
    def num_generated(self) -> int:
        """How many tokens were sampled."""
        return len(self.tokens) - self.num_prompt

    @property
    def is_decoding(self) -> bool:
        """Whether all that comes in slices is computed, and tokens come."""
        return self.num_computed >= self.num_prefill

    @property
    def wants_prompt_rows(self) -> bool:
        """Whether computed tokens of the prompt are of no use without their rows."""
        return self.next_prompt_row < self.num_prompt

    def num_rows(self, num_tokens: int) -> int:
        """Tell how many rows of logits the last of the next tokens must give."""
        end = self.num_computed + num_tokens
        if self.next_prompt_row < min(end, self.num_prompt):
            return end - max(self.num_computed, self.next_prompt_row)
        return int(end == len(self.tokens))

    def replay(self, token: int, data: bytes) -> None:
        """Take a token that an earlier attempt sampled and told."""
        self.append(token, None, data)
        self.unsent_text.clear()
        self.num_sent += 1
        self.num_prefill = len(self.tokens)
        self.next_prompt_row = self.num_prompt

    def append(self, token: int, logprob: TokenLogprob | None, data: bytes) -> None:
        """Take a sampled token and the bytes it spells."""
        self.tokens.append(token)
        if logprob is not None:
            self.unsent_logprobs.append(logprob)
        text = self.stops.push(self.detokenizer.push(data)) if data else ""
        if text:
            self.unsent_text.append(text)

    def finish_reason(self, *, is_end: bool) -> FinishReason | None:
        """Tell why generation ends with the last token, or None where it goes on."""
        if self.stops.is_stopped:
            return FinishReason.STOP
        if is_end:
            return FinishReason.EOS
        if self.num_generated >= self.limit:
            return FinishReason.LENGTH
        return None

    def describe(self) -> SlotStats:
        """Tell where the sequence stands, without any text."""
        return SlotStats(
            id=self.slot,
            job=self.job.id,
            owner=self.job.owner,
            num_prompt_tokens=self.num_prompt,
            num_prompt_processed=min(self.num_computed, self.num_prompt),
            num_cached_tokens=self.num_cached,
            num_decoded=self.num_generated,
            num_remaining=self.limit - self.num_generated,
        )


def _token_limit(job: GenerationJob, num_prompt: int, context_length: int) -> tuple[int, bool]:
    """Tell how many tokens may be generated, and whether the context is what bounds them."""
    room = context_length - num_prompt
    if job.max_tokens is None or job.max_tokens > room:
        return room, True
    return job.max_tokens, False
