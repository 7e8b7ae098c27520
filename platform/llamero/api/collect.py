"""Whole answers: the events of a run put together per choice."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.protocol.events import (
    Done,
    Failed,
    FinishReason,
    PromptLogprobs,
    Started,
    Timings,
    TokenLogprob,
    Tokens,
)
from llamero.api.errors import from_failed
from llamero.api.run import GenerationRun
from llamero.api.turn import Piece, TurnFormat, TurnReader, finish_word

_NOTHING = Done(FinishReason.LENGTH, 0, 0, 0)


@dataclass(slots=True)
class Choice:
    """One finished choice. Of a turn that is read, ``pieces`` are what it is made of."""

    index: int
    reader: TurnReader | None = None
    pieces: list[Piece] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprob] = field(default_factory=list)
    slot: int = -1
    done: Done = _NOTHING

    @property
    def text(self) -> str:
        """The generated text."""
        return "".join(self.texts)

    @property
    def finish_reason(self) -> str:
        """OpenAI's word for why it ended."""
        return finish_word(self.done.finish_reason, self.reader)

    @property
    def mean_logprob(self) -> float:
        """How likely the model found its own text, per token."""
        chosen = [logprob.chosen.logprob for logprob in self.logprobs]
        return sum(chosen) / len(chosen) if chosen else 0.0


async def collect(
    run: GenerationRun, num_choices: int, turn: TurnFormat | None = None
) -> list[Choice]:
    """Read a run to its end and close it; a choice that failed fails the request."""
    choices = [Choice(index) for index in range(num_choices)]
    if turn is not None and not turn.is_plain:
        choices = [Choice(index, turn.reader(index)) for index in range(num_choices)]
    try:
        async for index, event in run:
            choice = choices[index]
            match event:
                case Tokens():
                    choice.texts.append(event.text)
                    choice.token_ids.extend(event.token_ids)
                    choice.logprobs.extend(event.logprobs)
                    if choice.reader:
                        choice.pieces += choice.reader.feed(event.text)
                case PromptLogprobs():
                    place_logprobs(choice.prompt_logprobs, event)
                case Started():
                    choice.slot = event.slot
                case Done():
                    choice.done = event
                    if choice.reader:
                        choice.pieces += choice.reader.finish()
                case Failed():
                    raise from_failed(event)
    finally:
        await run.close()
    return choices


def place_logprobs(told: list[TokenLogprob], event: PromptLogprobs) -> None:
    """Put the next log-probabilities of a prompt where they belong.

    Another attempt of a job whose replica was lost tells them from the first on once more.
    """
    told[event.first_index : event.first_index + len(event.logprobs)] = event.logprobs


def usage_object(ends: Sequence[Done], num_choices: int) -> dict[str, Any]:
    """Count a request: a prompt with several choices counts once, as computed or cached."""
    num_prompt = sum(end.num_prompt_tokens for end in ends[::num_choices])
    num_cached = sum(
        min(end.num_cached_tokens for end in ends[start : start + num_choices])
        for start in range(0, len(ends), num_choices)
    )
    num_completion = sum(end.num_completion_tokens for end in ends)
    return {
        "prompt_tokens": num_prompt,
        "completion_tokens": num_completion,
        "total_tokens": num_prompt + num_completion,
        "prompt_tokens_details": {"cached_tokens": num_cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": sum(end.num_reasoning_tokens for end in ends),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def timings_object(done: Done) -> dict[str, Any]:
    """Give llama-server's ``timings``, with what guesses did."""
    described = describe_timings(done.timings, done.num_cached_tokens, done.num_completion_tokens)
    if done.num_drafted_tokens:
        described["draft_n"] = done.num_drafted_tokens
        described["draft_n_accepted"] = done.num_accepted_tokens
    return described


def describe_timings(timings: Timings, num_cached: int, num_predicted: int) -> dict[str, Any]:
    """Give ``timings`` after so many tokens; the first of them took no step of its own."""
    num_prompt, num_steps = timings.num_prompt_computed, max(0, num_predicted - 1)
    prompt_ms, predicted_ms = round(timings.prompt_ms, 3), round(timings.predicted_ms, 3)
    return {
        "cache_n": num_cached,
        "prompt_n": num_prompt,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": _ratio(prompt_ms, num_prompt),
        "prompt_per_second": _ratio(num_prompt * 1000, prompt_ms),
        "predicted_n": num_predicted,
        "predicted_ms": predicted_ms,
        "predicted_per_token_ms": _ratio(predicted_ms, num_steps),
        "predicted_per_second": _ratio(num_steps * 1000, predicted_ms),
    }


def _ratio(amount: float, per: float) -> float:
    return amount / per if per > 0 else 0.0
