"""Where does one job stand?"""

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from enum import Enum, auto
from types import MappingProxyType

from inference.backend.base import Model, Sampler
from inference.cache.holders import Match
from inference.protocol.events import FinishReason, TokenLogprob
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import SlotStats
from inference.text.detokenizer import Detokenizer
from inference.text.indent_rule import IndentRule
from inference.text.reasoning_counter import make_counter
from inference.text.stop_matcher import StopMatcher

NOTHING: Mapping[int, bytes] = MappingProxyType({})


class SequenceState(Enum):
    """waiting -> held -> running -> finished; any -> finished; held, running -> waiting.

    Held: seated, not yet computing. Who must give cells up waits again.
    """

    WAITING = auto()
    HELD = auto()
    RUNNING = auto()
    FINISHED = auto()


class Sequence:
    """One job on its way through the engine; owned by the engine thread.

    ``num_computed`` chases ``num_tokens``, and nothing else tells what is left to do. The first
    ``num_prefill`` tokens come in slices as large as the step allows, what follows one by one.
    ``tokens`` is what the context holds: a context shift makes a shorter list of it.
    ``drafts`` are guesses at the next tokens: in no way part of the sequence until the model
    agrees. ``next_prompt_row`` is the first position whose row the job still wants for the
    log-probabilities of its prompt; ``num_prompt`` where it wants none.
    """

    def __init__(
        self,
        job: GenerationJob,
        prompt: SequenceOf[int],
        sampler: Sampler,
        context_length: int,
        *,
        is_shifting: bool = False,
        preserved: Mapping[int, bytes] = NOTHING,
    ) -> None:
        self.job = job
        self.sampler = sampler
        self.tokens = list(prompt)
        self.num_prompt = len(self.tokens)
        self.num_prefill = self.num_prompt
        self.num_computed = 0
        self.num_cached = 0
        self.num_generated = 0
        self.num_redrawn = 0
        self.num_dropped = 0
        self.next_prompt_row = 0 if job.num_prompt_logprobs is not None else self.num_prompt
        self.drafts: tuple[int, ...] = ()
        self.num_drafted = self.num_accepted = 0
        self.slot = -1
        self.state = SequenceState.WAITING
        self.detokenizer = Detokenizer()
        self.stops = StopMatcher(job.stop)
        self.indent = IndentRule(job.min_indent) if job.min_indent else None
        self._reasoning = make_counter(job.reasoning) if job.reasoning else None
        self.has_new_line = False
        self.preserved = preserved
        self.context_length = context_length
        self.limit, self.is_limit_context = _token_limit(
            job, self.num_prompt, context_length, is_shifting=is_shifting
        )
        self.unsent_text: list[str] = []
        self.unsent_tokens: list[int] = []
        self.unsent_logprobs: list[TokenLogprob] = []
        self.awaits: Match | None = None
        self.pause_at = 0
        self.num_failures = 0
        self.started_at = 0.0
        self.first_token_at = 0.0

    @property
    def num_tokens(self) -> int:
        """Prompt and generated tokens together, as far as the context holds them."""
        return len(self.tokens)

    @property
    def num_reasoning(self) -> int:
        """How many generated tokens are reasoning; those of an earlier attempt too."""
        return self._reasoning.num_tokens if self._reasoning is not None else 0

    @property
    def num_prompt_processed(self) -> int:
        """How much of the prompt was taken in, whatever had to make room since."""
        if self.num_generated:
            return self.num_prompt
        return min(max(self.num_computed, self.num_cached), self.num_prompt)

    @property
    def num_pending(self) -> int:
        """How many tokens wait to be computed."""
        return len(self.tokens) - self.num_computed

    @property
    def is_decoding(self) -> bool:
        """Whether all that comes in slices is computed, and tokens come one by one."""
        return self.num_computed >= self.num_prefill

    @property
    def num_left_of_prompt(self) -> int:
        """How many tokens are left that come in slices, up to a pause or what the context holds."""
        end = min(self.num_prefill, self.context_length)
        if self.num_computed < self.pause_at < end:
            end = self.pause_at
        return end - self.num_computed

    @property
    def wants_prompt_rows(self) -> bool:
        """Whether computed tokens of the prompt are of no use without their rows."""
        return self.next_prompt_row < self.num_prompt

    @property
    def is_redrawing(self) -> bool:
        """Whether the sampler must yet draw again what an earlier attempt told."""
        return self.num_redrawn < len(self.job.emitted_tokens)

    def num_rows(self, num_tokens: int) -> int:
        """Tell how many rows of logits the last of the next tokens must give."""
        end = self.num_computed + num_tokens
        if self.next_prompt_row < min(end, self.num_prompt):
            return end - max(self.num_computed, self.next_prompt_row)
        if self.is_redrawing:
            return int(end == self.num_prompt + self.num_redrawn - self.num_dropped)
        return int(end == len(self.tokens))

    def start(self, num_cached: int, now: float) -> bool:
        """Begin behind a prefix that the slot holds; tells whether it is for the first time."""
        self.num_computed = num_cached
        self.state = SequenceState.RUNNING
        if self.started_at:
            return False
        # What an earlier attempt told may be there too, but is no part of the prompt.
        self.num_cached, self.started_at = min(num_cached, self.num_prompt), now
        return True

    def rewind(self, num_computed: int = 0) -> None:
        """Compute again all but the first tokens; those that were sampled come in slices too.

        But for those that the sampler must yet draw again, one by one.
        """
        self.num_computed = num_computed
        self.num_prefill = len(self.tokens) - (len(self.job.emitted_tokens) - self.num_redrawn)
        self.drafts = ()

    def shift(self, num_keep: int, num_drop: int) -> None:
        """Drop computed tokens behind the first; what follows moves up."""
        self.tokens = self.tokens[:num_keep] + self.tokens[num_keep + num_drop :]
        self.num_dropped += num_drop
        self.num_computed -= num_drop
        self.num_prefill -= num_drop
        self.pause_at = 0

    def spell(self, token: int, model: Model) -> bytes:
        """Give what a token adds to the text: a control token something only where preserved."""
        return self.preserved.get(token) or model.text_bytes(token)

    def append(self, token: int, logprob: TokenLogprob | None, data: bytes) -> str:
        """Take a sampled token and the bytes it spells; gives the new text that is certain."""
        self.tokens.append(token)
        self.unsent_tokens.append(token)
        self.num_generated += 1
        if logprob is not None:
            self.unsent_logprobs.append(logprob)
        text = self.detokenizer.push(data) if data else ""
        # A text that is asked to be longer yet may go on behind a stop string.
        if text and self.num_generated > self.job.min_tokens:
            text = self.stops.push(text)
        if text and self.indent is not None:
            text = self.indent.push(text)
        if self._reasoning is not None:
            self._reasoning.feed(text)
        if text:
            self.unsent_text.append(text)
            self.has_new_line = self.has_new_line or "\n" in text
        return text

    def flush_text(self) -> str:
        """Give the text that waited for a stop string, or for more of its line."""
        text = self.stops.flush()
        if self.indent is None:
            return text
        return self.indent.push(text) + self.indent.flush()

    def replay(self, token: int, data: bytes) -> None:
        """Take a token that an earlier attempt sampled and told."""
        self.append(token, None, data)
        self.unsent_text.clear()
        self.unsent_tokens.clear()
        self.next_prompt_row = self.num_prompt

    def finish_reason(self, *, is_end: bool) -> FinishReason | None:
        """Tell why generation ends with the last token, or None where it goes on."""
        if self.stops.is_stopped:
            return FinishReason.STOP
        if is_end:
            return FinishReason.EOS
        if self.num_generated >= self.limit or (self.indent is not None and self.indent.is_broken):
            return FinishReason.LENGTH
        return None

    def describe(self) -> SlotStats:
        """Tell where the sequence stands, without any text."""
        return SlotStats(
            id=self.slot,
            job=self.job.id,
            owner=self.job.owner,
            num_prompt_tokens=self.num_prompt,
            num_prompt_processed=self.num_prompt_processed,
            num_cached_tokens=self.num_cached,
            num_decoded=self.num_generated,
            num_remaining=self.limit - self.num_generated,
            has_new_line=self.has_new_line,
        )


def _token_limit(
    job: GenerationJob, num_prompt: int, context_length: int, *, is_shifting: bool
) -> tuple[int, bool]:
    """Tell how many tokens may be generated, and whether the context is what bounds them.

    A context that shifts has no end: then too, only who names a number gets more than it holds.
    """
    room = context_length - num_prompt
    if job.max_tokens is None or (job.max_tokens > room and not is_shifting):
        return room, True
    return job.max_tokens, False
