"""The sampling fields of a request: what each may hold, and what they become."""

import secrets
from typing import Any

import msgspec

from inference.protocol.sampling import (
    MAX_SAMPLERS,
    NUM_SEEDS,
    SAMPLER_LETTERS,
    SamplingParams,
)
from llamero.api.answer_form import read_answer_form
from llamero.api.fields import (
    AnyValue,
    StopStrings,
    StrictBoolean,
    StrictFloat,
    StrictInteger,
    StrictString,
)
from llamero.api.grammar_triggers import read_lazy_grammar
from llamero.api.native_fields import NativeFields
from llamero.api.plugins import read_plugins
from llamero.errors import InvalidValue

_LARGE = 1e6
MAX_CHOICES = 8
MAX_PROBS = 100
# llama-server's own values for "take a random one".
_RANDOM_SEEDS = (-1, NUM_SEEDS)
_SEED_STEP = 0x9E3779B1
_MAX_BREAKERS = 16
# llama-server's other names; with "-", or nothing, for "_" they are all known too.
_SAMPLER_ALIASES = {"typical_p": "typ_p", "typ": "typ_p", "nucleus": "top_p", "temp": "temperature"}
_SAMPLER_NAMES = {
    spelling: name
    for alias, name in (
        *((name, name) for name in SAMPLER_LETTERS.values()),
        *_SAMPLER_ALIASES.items(),
    )
    for spelling in (alias, alias.replace("_", "-"), alias.replace("_", ""))
}
# Samplers that llama-server has no more and passes over: saved settings of clients still name them.
_FORMER_SAMPLERS = frozenset({"tfs_z", "tfs-z", "tfs", "f"})


class SamplingSerializer(NativeFields):
    """llama-server's sampling fields, which every generating route takes at top level."""

    temperature = StrictFloat(-_LARGE, _LARGE, required=False)
    dynatemp_range = StrictFloat(0, 100, required=False)
    dynatemp_exponent = StrictFloat(0, 100, required=False)
    top_k = StrictInteger(-1, required=False)
    top_p = StrictFloat(0, 1, required=False)
    min_p = StrictFloat(0, 1, required=False)
    typical_p = StrictFloat(0, 1, required=False)
    top_n_sigma = StrictFloat(-1, 100, required=False)
    xtc_probability = StrictFloat(0, 1, required=False)
    xtc_threshold = StrictFloat(0, 1, required=False)
    repeat_last_n = StrictInteger(-1, required=False)
    repeat_penalty = StrictFloat(0.01, 10, required=False)
    presence_penalty = StrictFloat(-2, 2, required=False)
    frequency_penalty = StrictFloat(-2, 2, required=False)
    dry_multiplier = StrictFloat(0, 100, required=False)
    dry_base = StrictFloat(1, 100, required=False)
    dry_allowed_length = StrictInteger(0, 1024, required=False)
    dry_penalty_last_n = StrictInteger(-1, required=False)
    dry_sequence_breakers = StopStrings(_MAX_BREAKERS, required=False)
    mirostat = StrictInteger(0, 2, required=False)
    mirostat_tau = StrictFloat(0, 1000, required=False)
    mirostat_eta = StrictFloat(0, 100, required=False)
    adaptive_target = StrictFloat(-_LARGE, 1, required=False)
    adaptive_decay = StrictFloat(0, 0.99, required=False)
    min_keep = StrictInteger(0, 1024, required=False)
    samplers = AnyValue(required=False)
    sampler_seq = StrictString(required=False)
    plugins = AnyValue(required=False)
    seed = StrictInteger(-(2**63), 2**64 - 1, required=False)
    logit_bias = AnyValue(required=False)
    grammar = AnyValue(required=False)
    json_schema = AnyValue(required=False)
    response_format = AnyValue(required=False)
    structured_outputs = AnyValue(required=False)
    guided_json = AnyValue(required=False)
    guided_regex = AnyValue(required=False)
    guided_choice = AnyValue(required=False)
    guided_grammar = AnyValue(required=False)
    grammar_lazy = StrictBoolean(required=False)
    grammar_triggers = AnyValue(required=False)
    preserved_tokens = AnyValue(required=False)
    ignore_eos = StrictBoolean(required=False)
    min_tokens = StrictInteger(0, required=False)
    cache_prompt = StrictBoolean(required=False)
    stream = StrictBoolean(required=False)
    lora = AnyValue(required=False)
    user = StrictString(required=False)


def read_sampling(fields: dict[str, Any], base: SamplingParams) -> SamplingParams:
    """Build the parameters from validated fields over an API's defaults; ``logit_bias`` is apart.

    Where no seed is given one is drawn here, so that an answer can be repeated, and a job that
    moves to another replica goes on in the same way.
    """
    chosen = {name: fields[name] for name in SamplingParams.__struct_fields__ if name in fields}
    chosen.pop("logit_bias", None)
    chosen["grammar"], chosen["grammar_field"] = read_answer_form(fields)
    chosen |= read_lazy_grammar(fields)
    chosen["seed"] = _read_seed(fields.get("seed", -1))
    chosen["samplers"] = _read_samplers(fields, base)
    if "plugins" in fields:
        chosen["plugins"] = read_plugins(fields["plugins"])
    defaults = {name: getattr(base, name) for name in SamplingParams.__struct_fields__}
    return SamplingParams(**(defaults | chosen))


def sampling_of_choice(sampling: SamplingParams, choice: int) -> SamplingParams:
    """Give each choice of a request a seed of its own; the first keeps the request's."""
    if not choice or sampling.seed is None:
        return sampling
    seed = (sampling.seed + choice * _SEED_STEP) % NUM_SEEDS
    return msgspec.structs.replace(sampling, seed=seed)


def _read_seed(seed: int) -> int:
    return secrets.randbelow(NUM_SEEDS) if seed in _RANDOM_SEEDS else seed % NUM_SEEDS


def _read_samplers(fields: dict[str, Any], base: SamplingParams) -> tuple[str, ...]:
    """Read the order of samplers; a target to adapt to adds the sampler that does."""
    names = base.samplers
    for field in ("sampler_seq", "samplers"):
        if field in fields:
            names = _read_order(fields[field], field)
    if fields.get("adaptive_target", -1) >= 0 and "adaptive_p" not in names:
        names = (*names, "adaptive_p")
    return names


def _read_order(value: Any, param: str) -> tuple[str, ...]:
    """Read a list of names, or llama-server's letters."""
    known = SAMPLER_LETTERS if isinstance(value, str) else _SAMPLER_NAMES
    if not isinstance(value, str | list) or len(value) > MAX_SAMPLERS:
        raise InvalidValue(
            param, f"{param} must be a list of at most {MAX_SAMPLERS} names, or a text of letters."
        )
    try:
        if isinstance(value, list):
            value = [name.lower() for name in value]
        return tuple(known[name] for name in value if name not in _FORMER_SAMPLERS)
    except (KeyError, AttributeError):
        allowed = ", ".join(f"{name} ({letter})" for letter, name in SAMPLER_LETTERS.items())
        raise InvalidValue(param, f"{param} may hold only {allowed}.") from None
