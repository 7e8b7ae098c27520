"""A llama-server completion request: from the JSON a client sends to what is generated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from inference.protocol.sampling import SamplingParams
from llamero.api.adapters import read_adapters
from llamero.api.fields import AnyValue, StopStrings, StrictBoolean, StrictInteger
from llamero.api.generation import GenerationSettings
from llamero.api.guesses import read_guess_limits
from llamero.api.lengths import LEAST_LENGTH, limit_of, read_length
from llamero.api.logit_bias import read_biases
from llamero.api.native_fields import read_native_fields
from llamero.api.sampling import MAX_CHOICES, MAX_PROBS, SamplingSerializer, read_sampling
from llamero.errors import InvalidValue


class NativeGenerationSerializer(SamplingSerializer):
    """What POST /completion and /infill take alike."""

    n_predict = StrictInteger(LEAST_LENGTH, required=False)
    max_tokens = StrictInteger(LEAST_LENGTH, required=False)
    max_completion_tokens = StrictInteger(LEAST_LENGTH, required=False)
    n_cmpl = StrictInteger(1, MAX_CHOICES, required=False)
    n = StrictInteger(1, MAX_CHOICES, required=False)
    n_probs = StrictInteger(0, MAX_PROBS, required=False)
    logprobs = StrictInteger(0, MAX_PROBS, required=False)
    post_sampling_probs = StrictBoolean(required=False)
    stop = StopStrings(64, required=False)
    return_tokens = StrictBoolean(required=False)
    response_fields = AnyValue(required=False)


class CompletionSerializer(NativeGenerationSerializer):
    """The fields of POST /completion."""

    prompt = AnyValue()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """A validated request, and what its answer shall hold."""

    settings: GenerationSettings
    n_predict: int
    return_tokens: bool
    response_fields: tuple[str, ...]


def read_completion_request(fields: dict[str, Any], body: Mapping[str, Any]) -> CompletionRequest:
    """Read how to generate from validated fields; raises LlameroError."""
    n_predict = read_length(fields)
    max_tokens = limit_of(n_predict)
    num_probs = fields.get("n_probs", fields.get("logprobs", 0))
    min_tokens = fields.get("min_tokens", 0)
    if max_tokens is not None and min_tokens > max_tokens:
        raise InvalidValue("min_tokens", "min_tokens must not be more than n_predict.")
    sampling = read_sampling(fields, SamplingParams())
    biases = read_biases(fields.get("logit_bias", {}), has_text_keys=True)
    cache_prompt = fields.get("cache_prompt", True)
    return CompletionRequest(
        settings=GenerationSettings(
            sampling=msgspec.structs.replace(sampling, logit_bias=biases.ids),
            text_biases=biases.texts,
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            stop=fields.get("stop", ()),
            ignore_eos=fields.get("ignore_eos", False),
            num_logprobs=num_probs or None,
            post_sampling_probs=fields.get("post_sampling_probs", False),
            cache_prompt=cache_prompt,
            warms_cache=cache_prompt,
            guesses=read_guess_limits(body),
            adapters=read_adapters(fields["lora"]) if "lora" in fields else None,
            stream=fields.get("stream", False),
            num_choices=fields.get("n_cmpl", fields.get("n", 1)),
            **read_native_fields(fields),
        ),
        n_predict=n_predict,
        return_tokens=fields.get("return_tokens", False),
        response_fields=_read_response_fields(fields.get("response_fields", [])),
    )


def _read_response_fields(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InvalidValue("response_fields", "response_fields must be a list of strings.")
    return tuple(value)
