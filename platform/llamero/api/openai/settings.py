"""The generation fields that OpenAI's two text APIs share, with OpenAI's limits and defaults."""

from typing import Any

import msgspec

from inference.protocol.sampling import SamplingParams
from llamero.api.adapters import read_adapters
from llamero.api.fields import (
    AnyValue,
    StopStrings,
    StrictFloat,
    StrictInteger,
)
from llamero.api.generation import GenerationSettings
from llamero.api.logit_bias import read_biases
from llamero.api.native_fields import read_native_fields
from llamero.api.sampling import MAX_CHOICES, MAX_PROBS, SamplingSerializer, read_sampling
from llamero.errors import InvalidValue

# OpenAI's defaults where OpenAI has the field; llama-server's for all other samplers.
MAX_PROMPT_LOGPROBS = 20
DEFAULT_SAMPLING = msgspec.structs.replace(SamplingParams(), temperature=1.0, top_p=1.0)


class OpenAISerializer(SamplingSerializer):
    """What both take."""

    temperature = StrictFloat(0, 2, required=False)
    n = StrictInteger(1, MAX_CHOICES, required=False)
    n_cmpl = StrictInteger(1, MAX_CHOICES, required=False)
    n_probs = StrictInteger(0, MAX_PROBS, required=False)
    stop = StopStrings(4, required=False)
    stream_options = AnyValue(required=False)
    prompt_logprobs = StrictInteger(0, MAX_PROMPT_LOGPROBS, required=False)


def read_settings(
    fields: dict[str, Any],
    *,
    max_tokens: int | None,
    num_logprobs: int | None,
    num_prompt_logprobs: int | None,
) -> GenerationSettings:
    """Build the settings from validated fields."""
    min_tokens = fields.get("min_tokens", 0)
    if max_tokens is not None and min_tokens > max_tokens:
        raise InvalidValue("min_tokens", "min_tokens must not be more than max_tokens.")
    sampling = read_sampling(fields, DEFAULT_SAMPLING)
    biases = read_biases(fields.get("logit_bias", {}), has_text_keys=False)
    return GenerationSettings(
        sampling=msgspec.structs.replace(sampling, logit_bias=biases.ids),
        text_biases=biases.texts,
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        stop=fields.get("stop", ()),
        ignore_eos=fields.get("ignore_eos", False),
        num_logprobs=num_logprobs,
        num_prompt_logprobs=num_prompt_logprobs,
        cache_prompt=fields.get("cache_prompt", True),
        adapters=read_adapters(fields["lora"]) if "lora" in fields else None,
        stream=fields.get("stream", False),
        num_choices=fields.get("n", 1),
        **read_native_fields(fields),
    )


def with_native_names(fields: dict[str, Any]) -> dict[str, Any]:
    """Have llama-server's name of the number of choices mean OpenAI's."""
    return fields | {"n": fields["n_cmpl"]} if "n_cmpl" in fields else fields


def read_prompt_logprobs(fields: dict[str, Any]) -> int | None:
    """Read vLLM's ``prompt_logprobs``, which is no part of streamed answers."""
    if "prompt_logprobs" not in fields:
        return None
    if fields.get("stream", False):
        raise InvalidValue("prompt_logprobs", "prompt_logprobs is not possible with stream: true.")
    return int(fields["prompt_logprobs"])


def read_include_usage(fields: dict[str, Any]) -> bool:
    """Whether a stream ends with a usage chunk."""
    options = fields.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise InvalidValue("stream_options", "stream_options must be an object.")
    if not fields.get("stream", False):
        raise InvalidValue("stream_options", "stream_options is only allowed with stream: true.")
    wanted = options.get("include_usage")
    if wanted is not None and type(wanted) is not bool:
        raise InvalidValue(
            "stream_options.include_usage", "stream_options.include_usage must be true or false."
        )
    return bool(wanted)
