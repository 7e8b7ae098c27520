"""A legacy completion request: from the JSON a client sends to what is generated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llamero.api.defaults import NO_DEFAULTS, RequestDefaults, with_defaults
from llamero.api.fields import AnyValue, StrictBoolean, StrictInteger, StrictString, validate
from llamero.api.generation import GenerationSettings
from llamero.api.lengths import LEAST_LENGTH, limit_of, read_length
from llamero.api.openai.settings import (
    OpenAISerializer,
    read_include_usage,
    read_prompt_logprobs,
    read_settings,
    with_native_names,
)
from llamero.api.prompts import PromptText, read_prompts
from llamero.api.sampling import MAX_CHOICES
from llamero.errors import InvalidValue

DEFAULT_MAX_TOKENS = 16


class CompletionSerializer(OpenAISerializer):
    """The fields of POST /v1/completions."""

    prompt = AnyValue()
    n_predict = StrictInteger(LEAST_LENGTH, required=False)
    max_tokens = StrictInteger(LEAST_LENGTH, required=False)
    max_completion_tokens = StrictInteger(LEAST_LENGTH, required=False)
    best_of = StrictInteger(1, MAX_CHOICES, required=False)
    echo = StrictBoolean(required=False)
    logprobs = StrictInteger(0, 5, required=False)
    suffix = StrictString(required=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """A validated completion request; ``settings.num_choices`` are tried, fewer may be returned.

    With a ``suffix`` each prompt stands before a gap, and the suffix behind it.
    """

    prompts: list[PromptText]
    suffix: str
    settings: GenerationSettings
    num_returned: int
    num_logprobs: int | None
    has_prompt_logprobs: bool
    echo: bool
    include_usage: bool


def read_completion_request(
    body: Mapping[str, Any], defaults: RequestDefaults = NO_DEFAULTS
) -> CompletionRequest:
    """Validate a body, over the defaults of who answers; raises ValidationError or LlameroError."""
    fields = with_native_names(with_defaults(validate(CompletionSerializer, body), defaults))
    num_returned, num_tried = fields.get("n", 1), _read_best_of(fields)
    num_logprobs = fields.get("logprobs", fields.get("n_probs") or None)
    asked_prompt_logprobs = read_prompt_logprobs(fields)
    echoed_logprobs = num_logprobs if fields.get("echo") else None
    # Choosing between answers needs the likelihood of each.
    needed_logprobs = 0 if num_tried > num_returned and num_logprobs is None else num_logprobs
    prompts, suffix = read_prompts(fields["prompt"], "prompt"), fields.get("suffix", "")
    if suffix:
        _check_gaps(fields, prompts)
    return CompletionRequest(
        prompts=prompts,
        suffix=suffix,
        settings=read_settings(
            fields | {"n": num_tried},
            max_tokens=limit_of(read_length(fields, DEFAULT_MAX_TOKENS)),
            num_logprobs=needed_logprobs,
            num_prompt_logprobs=_larger(asked_prompt_logprobs, echoed_logprobs),
        ),
        num_returned=num_returned,
        num_logprobs=num_logprobs,
        has_prompt_logprobs=asked_prompt_logprobs is not None,
        echo=fields.get("echo", False),
        include_usage=read_include_usage(fields),
    )


def _check_gaps(fields: dict[str, Any], prompts: list[PromptText]) -> None:
    """Refuse what has no meaning where a gap is filled."""
    if not all(prompt.is_text for prompt in prompts):
        raise InvalidValue("prompt", "prompt must be text where there is a suffix.")
    for name in ("echo", "prompt_logprobs"):
        if fields.get(name, False) is not False:
            raise InvalidValue(name, f"{name} is not possible with suffix.")


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _read_best_of(fields: dict[str, Any]) -> int:
    num_returned = int(fields.get("n", 1))
    best_of = int(fields.get("best_of", num_returned))
    if best_of < num_returned:
        raise InvalidValue("best_of", "best_of must not be less than n.")
    if best_of > num_returned and fields.get("stream"):
        raise InvalidValue("best_of", "best_of above n is not possible with stream: true.")
    return best_of
