"""What a job tells its gateway, in order: started, tokens or vectors, then exactly one end."""

from enum import StrEnum

import msgspec


class FinishReason(StrEnum):
    """Why a sequence ended well. The gateway maps it to each API's own words."""

    EOS = "eos"
    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"


LEAST_LOGPROB = -9999.0
"""Stands for minus infinity, which JSON cannot carry; OpenAI sends the same."""


class Candidate(msgspec.Struct, frozen=True, array_like=True):
    """One possible token: its id, its raw bytes as latin-1 text, its log-probability."""

    id: int
    bytes_latin1: str
    logprob: float


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    """The chosen token and its best alternatives, most likely first."""

    chosen: Candidate
    top: tuple[Candidate, ...]


class Started(msgspec.Struct, frozen=True, tag="s", array_like=True):
    """A slot has taken the job."""

    slot: int
    num_cached_tokens: int


class Progress(msgspec.Struct, frozen=True, tag="p", array_like=True):
    """Prompt tokens computed so far, cached ones included, and how long that took."""

    num_processed: int
    num_prompt_tokens: int
    time_ms: float = 0.0


class Tokens(msgspec.Struct, frozen=True, tag="t", array_like=True):
    """New text (whole characters, never a part of a stop string) and the ids behind it.

    ``token_ids`` counts every new token even while its text is still held back.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] = ()


class PromptLogprobs(msgspec.Struct, frozen=True, tag="l", array_like=True):
    """Log-probabilities of prompt tokens from ``first_index`` on.

    Nothing foretells the first token of a prompt: its entry only names it.
    """

    first_index: int
    logprobs: tuple[TokenLogprob, ...]


class Vectors(msgspec.Struct, frozen=True, tag="v", array_like=True):
    """Vectors of the inputs from ``first_index`` on, as base64 of little-endian float32.

    A text holds rows of ``dimensions`` numbers: one, or, where nothing is pooled, one per token.
    The rows of a long input may come in several events.
    """

    first_index: int
    dimensions: int
    vectors: tuple[str, ...]


class Timings(msgspec.Struct, frozen=True, array_like=True):
    """Milliseconds a job spent in the engine, by kind of work."""

    prompt_ms: float = 0.0
    predicted_ms: float = 0.0
    num_prompt_computed: int = 0


class Pace(msgspec.Struct, frozen=True, tag="c", array_like=True):
    """How long the job took so far; comes before each Tokens of a job that is timed."""

    timings: Timings


class Done(msgspec.Struct, frozen=True, tag="d", array_like=True):
    """The job ended well. Counts are true, zeros included."""

    finish_reason: FinishReason
    num_prompt_tokens: int
    num_cached_tokens: int
    num_completion_tokens: int
    stop_word: str = ""
    timings: Timings = Timings()
    truncated: bool = False
    num_drafted_tokens: int = 0
    num_accepted_tokens: int = 0
    num_reasoning_tokens: int = 0


class Failed(msgspec.Struct, frozen=True, tag="e", array_like=True):
    """The job ended badly; the message is fit for the client.

    ``code`` is one of inference.protocol.errors.ErrorCode; ``is_retryable`` invites another try.
    ``param`` names the field of the request that is wrong, if known.
    """

    code: str
    message: str
    is_retryable: bool = False
    num_prompt_tokens: int = 0
    num_completion_tokens: int = 0
    param: str = ""


Event = Started | Progress | Pace | Tokens | PromptLogprobs | Vectors | Done | Failed
TERMINAL = (Done, Failed)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """Give the JSON form of an event."""
    return _encoder.encode(event)


def decode_event(raw: bytes | str) -> Event:
    """Read an event; raises msgspec.ValidationError for anything that is not one."""
    return _decoder.decode(raw)
