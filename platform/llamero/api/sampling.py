"""The sampling fields of a request: what each may hold, and what they become."""

from typing import Any

from inference.protocol.sampling import SamplingParams
from llamero.api.answer_form import read_answer_form
from llamero.api.fields import (
    AnyValue,
    RequestSerializer,
    StopStrings,
    StrictBoolean,
    StrictFloat,
    StrictInteger,
    StrictString,
)
from llamero.errors import InvalidValue, LlameroError, NotSupported

_LARGE = 1e6
MAX_LOGIT_BIAS = 300
MAX_CHOICES = 8
# llama-server's own value for "take a random one".
_RANDOM_SEEDS = (-1, 2**32 - 1)
_NUM_SEEDS = 2**32 - 1
_SEED_STEP = 0x9E3779B1
_SAMPLER_LETTERS = {
    "d": "dry",
    "k": "top_k",
    "y": "typ_p",
    "p": "top_p",
    "s": "top_n_sigma",
    "m": "min_p",
    "t": "temperature",
    "x": "xtc",
    "e": "penalties",
}
_SAMPLER_NAMES = {name: name for name in _SAMPLER_LETTERS.values()} | {"typical_p": "typ_p"}
# Fields by which other servers let a client name templates, files or addresses.
_REFUSED = (
    "chat_template",
    "lora",
    "lora_request",
    "lora_adapters",
    "api_base",
    "base_url",
    "user_config",
)


class SamplingSerializer(RequestSerializer):
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
    repeat_penalty = StrictFloat(0, 10, is_open=True, required=False)
    presence_penalty = StrictFloat(-2, 2, required=False)
    frequency_penalty = StrictFloat(-2, 2, required=False)
    dry_multiplier = StrictFloat(0, 100, required=False)
    dry_base = StrictFloat(1, 100, required=False)
    dry_allowed_length = StrictInteger(0, 1024, required=False)
    dry_penalty_last_n = StrictInteger(-1, required=False)
    dry_sequence_breakers = StopStrings(64, required=False)
    mirostat = StrictInteger(0, 2, required=False)
    mirostat_tau = StrictFloat(0, 1000, required=False)
    mirostat_eta = StrictFloat(0, 100, required=False)
    min_keep = StrictInteger(0, 1024, required=False)
    samplers = AnyValue(required=False)
    seed = StrictInteger(-1, 2**64 - 1, required=False)
    logit_bias = AnyValue(required=False)
    grammar = StrictString(required=False)
    json_schema = AnyValue(required=False)
    ignore_eos = StrictBoolean(required=False)
    min_tokens = StrictInteger(0, required=False)
    cache_prompt = StrictBoolean(required=False)
    stream = StrictBoolean(required=False)
    return_progress = StrictBoolean(required=False)
    user = StrictString(required=False)

    def to_internal_value(self, data: Any) -> Any:
        """Refuse the fields a request may not set, then validate the others."""
        for name in _REFUSED:
            if isinstance(data, dict) and data.get(name):
                raise NotSupported(name, f"{name} may not be set by a request.")
        return super().to_internal_value(data)


def read_sampling(fields: dict[str, Any], base: SamplingParams) -> SamplingParams:
    """Build the parameters from validated fields over an API's defaults."""
    chosen = {name: fields[name] for name in SamplingParams.__struct_fields__ if name in fields}
    chosen["grammar"] = read_answer_form(fields)
    if "samplers" in fields:
        chosen["samplers"] = _read_samplers(fields["samplers"])
    if "logit_bias" in fields:
        chosen["logit_bias"] = _read_logit_bias(fields["logit_bias"])
    if "seed" in fields:
        chosen["seed"] = _fold_seed(fields["seed"])
    defaults = {name: getattr(base, name) for name in SamplingParams.__struct_fields__}
    return SamplingParams(**(defaults | chosen))


def seed_of_choice(seed: int | None, choice: int) -> int | None:
    """Give each choice of a seeded request its own seed; the first keeps the request's."""
    return None if seed is None else (seed + choice * _SEED_STEP) % _NUM_SEEDS


def check_logit_bias(sampling: SamplingParams, num_vocab: int) -> None:
    """Refuse biases for tokens the model does not have."""
    for token, _ in sampling.logit_bias:
        if token >= num_vocab:
            raise InvalidValue(
                "logit_bias", f"logit_bias: the model has no token {token} (0 to {num_vocab - 1})."
            )


def _fold_seed(seed: int) -> int | None:
    return None if seed in _RANDOM_SEEDS else seed % _NUM_SEEDS


def _read_samplers(value: Any) -> tuple[str, ...]:
    known = _SAMPLER_LETTERS if isinstance(value, str) else _SAMPLER_NAMES
    if not isinstance(value, str | list) or len(value) > 32:
        raise InvalidValue("samplers", "samplers must be a list of sampler names.")
    try:
        return tuple(known[name] for name in value)
    except (KeyError, TypeError):
        names = ", ".join(_SAMPLER_LETTERS.values())
        raise InvalidValue("samplers", f"samplers may hold only {names}.") from None


def _read_logit_bias(value: Any) -> tuple[tuple[int, float], ...]:
    """Read ``{"id": bias}``, or llama-server's ``[[id, bias or false], …]``."""
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list):
        raise _bad_bias("must be an object of token ids and numbers")
    if len(pairs) > MAX_LOGIT_BIAS:
        raise _bad_bias(f"must have at most {MAX_LOGIT_BIAS} entries")
    return tuple(_read_bias(pair, is_keyed=isinstance(value, dict)) for pair in pairs)


def _read_bias(pair: Any, *, is_keyed: bool) -> tuple[int, float]:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise _bad_bias("must hold pairs of a token id and a number")
    token, bias = pair
    if is_keyed and token.isascii() and token.isdecimal() and len(token) < 11:
        token = int(token)
    if type(token) is not int or not 0 <= token < 2**31:
        raise _bad_bias("must name tokens by their ids")
    if bias is False and not is_keyed:
        return token, float("-inf")
    if type(bias) not in (int, float) or not -100 <= bias <= 100:
        raise _bad_bias("must have numbers between -100 and 100")
    return token, float(bias)


def _bad_bias(problem: str) -> LlameroError:
    return InvalidValue("logit_bias", f"logit_bias {problem}.")
