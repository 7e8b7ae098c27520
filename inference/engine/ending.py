"""What is a client told while a sequence goes on, and when it ends?"""

from inference.engine.sequence import Sequence
from inference.protocol.events import Done, Event, FinishReason, Pace, Timings, Tokens


def drain_tokens(sequence: Sequence, now: float) -> list[Event]:
    """Take the text and tokens that were not told yet, with the pace where it is wanted."""
    event = Tokens(
        "".join(sequence.unsent_text),
        tuple(sequence.unsent_tokens),
        tuple(sequence.unsent_logprobs),
    )
    sequence.unsent_text.clear()
    sequence.unsent_tokens.clear()
    sequence.unsent_logprobs.clear()
    return [Pace(_timings(sequence, now)), event] if sequence.job.is_timed else [event]


def describe_end(sequence: Sequence, reason: FinishReason, now: float) -> list[Event]:
    """Give the last events: text that was held for a stop string or for the end, then the end."""
    held = sequence.flush_text()
    if held:
        sequence.unsent_text.append(held)
    if sequence.stops.is_stopped:
        reason = FinishReason.STOP
    events: list[Event] = []
    if sequence.unsent_text or sequence.unsent_tokens:
        events += drain_tokens(sequence, now)
    is_full = sequence.is_limit_context and sequence.num_generated >= sequence.limit
    events.append(
        Done(
            finish_reason=reason,
            num_prompt_tokens=sequence.num_prompt,
            num_cached_tokens=sequence.num_cached,
            num_completion_tokens=sequence.num_generated,
            stop_word=sequence.stops.stop_word,
            timings=_timings(sequence, now),
            truncated=(reason is FinishReason.LENGTH and is_full) or sequence.num_dropped > 0,
            num_drafted_tokens=sequence.num_drafted,
            num_accepted_tokens=sequence.num_accepted,
            num_reasoning_tokens=sequence.num_reasoning,
        )
    )
    return events


def _timings(sequence: Sequence, now: float) -> Timings:
    if not sequence.started_at:
        return Timings(0.0, 0.0, 0)
    prompt_end = sequence.first_token_at or now
    return Timings(
        prompt_ms=(prompt_end - sequence.started_at) * 1000,
        predicted_ms=(now - prompt_end) * 1000,
        num_prompt_computed=sequence.num_prompt_processed - sequence.num_cached,
    )
