"""llama-server's ``generation_settings``: what was in effect for an answer."""

import math
from typing import Any

import msgspec

from inference.protocol.replicas import ModelFacts
from inference.protocol.sampling import GrammarTrigger, SamplingParams
from llamero.api.adapters import AdapterChoice
from llamero.api.generation import GenerationSettings
from llamero.api.sampling import read_sampling
from models_registry.selectors import ServedModel

_UNLIMITED = -1
_TRIGGER_TYPES = {"token": 0, "word": 1, "pattern": 2}


class ModelSide(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What of a model and its deployment shows in the settings of an answer."""

    end_tokens: tuple[int, ...] = ()
    adapters: AdapterChoice = ()
    speculation: str = ""


def model_side(
    served: ServedModel, facts: ModelFacts, settings: GenerationSettings | None = None
) -> ModelSide:
    """Tell what matters of a model; where a request names no adapters, those that act anyway."""
    adapters = settings.adapters if settings is not None else None
    if adapters is None:
        adapters = tuple((at, one.scale) for at, one in enumerate(facts.adapters) if one.scale)
    return ModelSide(
        end_tokens=facts.end_tokens, adapters=adapters, speculation=served.profile.speculation
    )


def describe_settings(
    sampling: SamplingParams,
    settings: GenerationSettings | None = None,
    n_predict: int = _UNLIMITED,
    model: ModelSide | None = None,
) -> dict[str, Any]:
    """Describe the settings of one choice; ignoring the end means to ban its tokens."""
    settings, model = settings or GenerationSettings(sampling=sampling), model or ModelSide()
    banned = model.end_tokens if settings.ignore_eos else ()
    biases = [*sampling.logit_bias, *((token, None) for token in banned)]
    return _describe_numbers(sampling) | {
        "seed": -1 if sampling.seed is None else sampling.seed,
        "samplers": list(sampling.samplers),
        "dry_sequence_breakers": list(sampling.dry_sequence_breakers),
        "logit_bias": [{"token": token, "bias": _bias(bias)} for token, bias in biases],
        "grammar": sampling.grammar,
        "grammar_lazy": sampling.is_grammar_lazy,
        "grammar_triggers": [_describe_trigger(one) for one in sampling.grammar_triggers],
        "preserved_tokens": list(sampling.preserved_tokens),
        "plugins": [{"name": plugin.name, "params": plugin.params} for plugin in sampling.plugins],
        "n_predict": n_predict,
        "max_tokens": n_predict,
        "min_tokens": settings.min_tokens,
        "n_keep": settings.num_keep,
        "n_discard": settings.num_discard,
        "n_indent": settings.min_indent,
        "t_max_predict_ms": settings.line_limit_ms or _UNLIMITED,
        "stop": list(settings.stop),
        "ignore_eos": settings.ignore_eos,
        "stream": settings.stream,
        "n_probs": settings.num_logprobs or 0,
        "post_sampling_probs": settings.post_sampling_probs,
        "timings_per_token": settings.tells_timings,
        "cache_prompt": settings.cache_prompt,
        "lora": [{"id": asked, "scale": scale} for asked, scale in model.adapters],
        "speculative.types": model.speculation or "none",
        "chat_format": "Content-only",
        "reasoning_format": "none",
        "reasoning_in_content": False,
        "generation_prompt": "",
        "backend_sampling": False,
    }


def describe_defaults(served: ServedModel, facts: ModelFacts) -> dict[str, Any]:
    """Describe what a request to llama-server's routes has that names nothing."""
    defaults = served.request_defaults
    # A seed is drawn for each request; here is none.
    sampling = msgspec.structs.replace(
        read_sampling(dict(defaults), SamplingParams()), seed=defaults.get("seed")
    )
    settings = GenerationSettings(sampling=sampling, num_keep=defaults.get("n_keep", 0))
    length = defaults.get("n_predict", _UNLIMITED)
    return describe_settings(sampling, settings, length, model_side(served, facts))


def _describe_numbers(sampling: SamplingParams) -> dict[str, Any]:
    """Give the samplers' numbers, whose names are llama-server's."""
    return {
        name: value
        for name, value in msgspec.structs.asdict(sampling).items()
        if type(value) in (int, float)
    }


def _bias(bias: float | None) -> float | None:
    """Give a bias; JSON has no infinity, so a ban is null, as at llama-server."""
    return None if bias is None or math.isinf(bias) else bias


def _describe_trigger(trigger: GrammarTrigger) -> dict[str, Any]:
    kind = "token" if trigger.token >= 0 else "word" if trigger.word else "pattern"
    described: dict[str, Any] = {
        "type": _TRIGGER_TYPES[kind],
        "value": trigger.word or trigger.pattern,
    }
    return described | ({"token": trigger.token} if kind == "token" else {})
