"""What holds where a request says nothing: llama-server's options of the same names, as columns."""

import math
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from inference.protocol.replicas import ModelKind
from inference.protocol.sampling import MAX_SAMPLERS, NUM_SEEDS, SAMPLER_LETTERS
from models_registry.models.profile import between

_PREFIX = "default_"
_SAMPLERS = tuple(SAMPLER_LETTERS.values())
_MOST = 2**31 - 1
_LONGEST = 1_000_000
_LAST_SEED = NUM_SEEDS - 1


def validate_number(value: float) -> None:
    """Refuse what is no number: it is neither below nor above any bound."""
    if math.isnan(value):
        raise ValidationError("Give a number.", code="no_number")


def validate_length(value: int) -> None:
    """Refuse answers without a token."""
    if value == 0:
        raise ValidationError("Give at least 1, or -1 for no bound.", code="invalid_length")


def validate_samplers(value: str) -> None:
    """Refuse what is no list of samplers."""
    names = split_samplers(value)
    if len(names) > MAX_SAMPLERS or any(name not in _SAMPLERS for name in names):
        raise ValidationError(
            f"Give names with semicolons between, of {', '.join(_SAMPLERS)}.",
            code="invalid_samplers",
        )


def split_samplers(value: str) -> list[str]:
    """Give the names of a list."""
    return [name.strip() for name in value.split(";")]


def _number(label: str, low: float, high: float, help_text: str) -> "models.FloatField[Any, Any]":
    return models.FloatField(
        label,
        null=True,
        blank=True,
        validators=[validate_number, *between(low, high)],
        help_text=help_text,
    )


def _integer(
    label: str, low: int, high: int, help_text: str, *more: Any
) -> "models.IntegerField[Any, Any]":
    return models.IntegerField(
        label, null=True, blank=True, validators=[*between(low, high), *more], help_text=help_text
    )


class RequestDefaultColumns(models.Model):
    """A column for each field of a request that may have a default; null leaves it to the API.

    Each is called as the field of a request, with ``default_`` before it. They are the gateway's
    alone: no replica is replaced when one changes.
    """

    default_temperature = _number(
        "temperature",
        0,
        2,
        "--temp. 0 always takes the likeliest token. Empty: 1 on /v1, 0.8 on llama-server's "
        "routes.",
    )
    default_top_k = _integer(
        "top k", 0, _MOST, "--top-k. Keeps so many of the likeliest; 0 keeps all. Empty: 40."
    )
    default_top_p = _number(
        "top p",
        0,
        1,
        "--top-p. Keeps the likeliest up to this share. Empty: 1 (all) on /v1, 0.95 on "
        "llama-server's routes.",
    )
    default_min_p = _number(
        "min p", 0, 1, "--min-p. Drops what is rarer than this share of the likeliest. Empty: 0.05."
    )
    default_typical_p = _number("typical p", 0, 1, "--typical. Empty: 1 (off).")
    default_top_n_sigma = _number("top n sigma", -1, 100, "--top-nsigma. Empty: -1 (off).")
    default_xtc_probability = _number("XTC probability", 0, 1, "--xtc-probability. Empty: 0 (off).")
    default_xtc_threshold = _number("XTC threshold", 0, 1, "--xtc-threshold. Empty: 0.1.")
    default_dynatemp_range = _number(
        "range of temperature", 0, 100, "--dynatemp-range. Empty: 0 (off)."
    )
    default_dynatemp_exponent = _number(
        "exponent of temperature", 0, 100, "--dynatemp-exp. Empty: 1."
    )
    default_repeat_penalty = _number(
        "repeat penalty", 0.01, 10, "--repeat-penalty. Above 1 repeats less. Empty: 1 (off)."
    )
    default_repeat_last_n = _integer(
        "repeat last n",
        -1,
        _MOST,
        "--repeat-last-n. How many tokens the penalties look at; -1: all. Empty: 64.",
    )
    default_presence_penalty = _number(
        "presence penalty", -2, 2, "--presence-penalty. Empty: 0 (off)."
    )
    default_frequency_penalty = _number(
        "frequency penalty", -2, 2, "--frequency-penalty. Empty: 0 (off)."
    )
    default_dry_multiplier = _number(
        "DRY multiplier", 0, 100, "--dry-multiplier. Punishes repeated phrases. Empty: 0 (off)."
    )
    default_dry_base = _number("DRY base", 1, 100, "--dry-base. Empty: 1.75.")
    default_dry_allowed_length = _integer(
        "DRY allowed length", 0, 1024, "--dry-allowed-length. Empty: 2."
    )
    default_dry_penalty_last_n = _integer(
        "DRY last n", -1, _MOST, "--dry-penalty-last-n. -1: the whole context. Empty: 64."
    )
    default_mirostat = _integer("Mirostat", 0, 2, "--mirostat. 1 or 2; 0 is off. Empty: 0.")
    default_mirostat_tau = _number("Mirostat tau", 0, 1000, "--mirostat-ent. Empty: 5.")
    default_mirostat_eta = _number("Mirostat eta", 0, 100, "--mirostat-lr. Empty: 0.1.")
    default_adaptive_target = _number(
        "adaptive target", -1, 1, "--adaptive-target. A probability to aim at. Empty: -1 (off)."
    )
    default_adaptive_decay = _number("adaptive decay", 0, 0.99, "--adaptive-decay. Empty: 0.9.")
    default_samplers = models.CharField(
        "samplers",
        max_length=400,
        blank=True,
        validators=[validate_samplers],
        help_text="--samplers. Which act, in their order: names with semicolons between, like "
        "penalties;top_k;temperature. Empty: llama-server's.",
    )
    default_seed = models.BigIntegerField(
        "seed",
        null=True,
        blank=True,
        validators=between(0, _LAST_SEED),
        help_text="--seed. The same request gets the same answer. Empty: each draws its own.",
    )
    default_n_predict = _integer(
        "most tokens of an answer",
        -1,
        _LONGEST,
        "--n-predict. Bounds answers whose request names no bound, and is what limits reserve for "
        "them. -1: to the end of the context. Empty: 16 on /v1/completions, else no bound.",
        validate_length,
    )
    default_n_keep = _integer(
        "kept when the context shifts",
        -1,
        _MOST,
        "--keep. Tokens of the prompt; -1: all of it. Empty: 0.",
    )

    class Meta:
        abstract = True

    @property
    def request_defaults(self) -> dict[str, Any]:
        """The defaults that are set, as the fields of a request."""
        found: dict[str, Any] = {}
        for name in REQUEST_DEFAULT_FIELDS:
            value = getattr(self, name)
            if value not in (None, ""):
                found[name.removeprefix(_PREFIX)] = value
        if "samplers" in found:
            found["samplers"] = split_samplers(found["samplers"])
        return found


REQUEST_DEFAULT_FIELDS = tuple(field.name for field in RequestDefaultColumns._meta.local_fields)


def find_idle_defaults(columns: RequestDefaultColumns, kind: ModelKind) -> dict[str, str]:
    """Give the defaults that nothing could come of: those of a model that generates nothing."""
    if kind.is_generative:
        return {}
    words = f"A model of kind {kind} generates nothing: leave this empty."
    return {f"{_PREFIX}{name}": words for name in columns.request_defaults}
