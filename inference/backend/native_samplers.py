"""How do a request's settings become samplers of llama.cpp?"""

import ctypes
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import llama_cpp

from inference.backend import native
from inference.backend.infill_sampler import InfillSampler
from inference.backend.llama_model import LlamaModel
from inference.protocol.sampling import NUM_SEEDS, SamplingParams

_MIROSTAT_M = 100
_NUM_DRY_TEMPLATES = 8
# Dividing by less could leave the range of a float.
_COLDEST = 1e-5
_MAY_DROP_THE_BEST = frozenset({"xtc", "typ_p", "infill"})


def is_greedy(params: SamplingParams) -> bool:
    """Tell whether the most likely token is to be taken of those that are left."""
    return params.temperature < _COLDEST


def effective_samplers(params: SamplingParams) -> tuple[str, ...]:
    """Name, in order and once, the samplers of a request that can change anything."""
    names = tuple(dict.fromkeys(params.samplers))
    if params.mirostat and not is_greedy(params):
        names = ("penalties", "dry", "temperature")
    names = tuple(name for name in names if name in _EFFECTS and _EFFECTS[name](params))
    if not is_greedy(params) or not _MAY_DROP_THE_BEST.isdisjoint(names):
        return names
    # Whatever only cuts off a tail never cuts off the best token.
    return tuple(name for name in names if name in ("penalties", "dry"))


def memory_length(params: SamplingParams, context_length: int) -> int:
    """Tell how many tokens back the penalties look."""
    names = effective_samplers(params)
    lengths = [0]
    if "penalties" in names:
        lengths.append(_whole(params.repeat_last_n, context_length))
    if "dry" in names:
        lengths.append(_whole(params.dry_penalty_last_n, context_length))
    return max(lengths)


class NativeSamplers:
    """Makes samplers for one model. Each belongs to whoever asked for it."""

    def __init__(self, model: LlamaModel) -> None:
        self._model = model
        self._dry_templates: OrderedDict[tuple[object, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, name: str, params: SamplingParams) -> Any:
        """Make one sampler by its name."""
        if name == "dry":
            return self._open_dry(params)
        return _BUILDERS[name](self._model, params)

    def open_infill(self) -> InfillSampler:
        """Make the one that llama.cpp has too, but not safely."""
        return InfillSampler(self._model)

    def close(self) -> None:
        """Free what is kept for later; idempotent."""
        with self._lock:
            while self._dry_templates:
                native.sampler_free(native.address_of(self._dry_templates.popitem()[1]))

    def _open_dry(self, params: SamplingParams) -> Any:
        """Copy a sampler of the same settings: making one reads the vocabulary for each breaker."""
        length = _whole(params.dry_penalty_last_n, self._model.context_length)
        key = (
            params.dry_multiplier,
            params.dry_base,
            params.dry_allowed_length,
            length,
            params.dry_sequence_breakers,
        )
        with self._lock:
            template = self._dry_templates.get(key)
            if template is None:
                template = self._dry_templates[key] = _dry(self._model, params, length)
                if len(self._dry_templates) > _NUM_DRY_TEMPLATES:
                    oldest = self._dry_templates.popitem(last=False)[1]
                    native.sampler_free(native.address_of(oldest))
            self._dry_templates.move_to_end(key)
            return llama_cpp.llama_sampler_clone(template)


def chain_of(samplers: list[Any]) -> int:
    """Join samplers into one, which owns them, and give its address."""
    params = llama_cpp.llama_sampler_chain_default_params()
    params.no_perf = True
    chain = llama_cpp.llama_sampler_chain_init(params)
    for sampler in samplers:
        llama_cpp.llama_sampler_chain_add(chain, sampler)
    return native.address_of(chain)


def _whole(length: int, context_length: int) -> int:
    return context_length if length < 0 else min(length, context_length)


def _seed(params: SamplingParams) -> int:
    seed = secrets.randbits(32) if params.seed is None else params.seed
    return seed % NUM_SEEDS


def _dry(model: LlamaModel, params: SamplingParams, length: int) -> Any:
    breakers = [word.encode("utf-8", "replace") for word in params.dry_sequence_breakers]
    return llama_cpp.llama_sampler_init_dry(
        model.vocab,
        params.dry_multiplier,
        params.dry_base,
        params.dry_allowed_length,
        length,
        (ctypes.c_char_p * len(breakers))(*breakers),
        len(breakers),
    )


def _penalties(model: LlamaModel, params: SamplingParams) -> Any:
    return llama_cpp.llama_sampler_init_penalties(
        model.num_vocab,
        _whole(params.repeat_last_n, model.context_length),
        params.repeat_penalty,
        params.frequency_penalty,
        params.presence_penalty,
    )


def _top_k(_model: LlamaModel, params: SamplingParams) -> Any:
    return llama_cpp.llama_sampler_init_top_k(params.top_k)


def _top_n_sigma(_model: LlamaModel, params: SamplingParams) -> Any:
    return llama_cpp.llama_sampler_init_top_n_sigma(params.top_n_sigma)


def _top_p(_model: LlamaModel, params: SamplingParams) -> Any:
    return llama_cpp.llama_sampler_init_top_p(params.top_p, params.min_keep)


def _min_p(_model: LlamaModel, params: SamplingParams) -> Any:
    return llama_cpp.llama_sampler_init_min_p(params.min_p, params.min_keep)


def _typical(_model: LlamaModel, params: SamplingParams) -> Any:
    return llama_cpp.llama_sampler_init_typical(params.typical_p, params.min_keep)


def _xtc(_model: LlamaModel, params: SamplingParams) -> Any:
    """Make the one that always acts: whether it does is drawn by position, not by it."""
    return llama_cpp.llama_sampler_init_xtc(1.0, params.xtc_threshold, params.min_keep, 0)


def _temperature(_model: LlamaModel, params: SamplingParams) -> Any:
    return llama_cpp.llama_sampler_init_temp_ext(
        params.temperature, params.dynatemp_range, params.dynatemp_exponent
    )


def _mirostat(model: LlamaModel, params: SamplingParams) -> Any:
    tau, eta = params.mirostat_tau, params.mirostat_eta
    if params.mirostat == 2:
        return llama_cpp.llama_sampler_init_mirostat_v2(_seed(params), tau, eta)
    return llama_cpp.llama_sampler_init_mirostat(
        model.num_vocab, _seed(params), tau, eta, _MIROSTAT_M
    )


def _adaptive_p(_model: LlamaModel, params: SamplingParams) -> Any:
    return llama_cpp.llama_sampler_init_adaptive_p(
        params.adaptive_target, params.adaptive_decay, _seed(params)
    )


def _are_penalties_on(params: SamplingParams) -> bool:
    changes = (params.repeat_penalty != 1, params.frequency_penalty, params.presence_penalty)
    return any(changes) and params.repeat_last_n != 0


def _is_dry_on(params: SamplingParams) -> bool:
    return params.dry_multiplier > 0 and params.dry_base >= 1 and params.dry_penalty_last_n != 0


_EFFECTS: dict[str, Callable[[SamplingParams], bool]] = {
    "penalties": _are_penalties_on,
    "dry": _is_dry_on,
    "top_n_sigma": lambda params: params.top_n_sigma > 0,
    "top_k": lambda params: params.top_k > 0,
    "typ_p": lambda params: params.typical_p < 1,
    "top_p": lambda params: params.top_p < 1,
    "min_p": lambda params: params.min_p > 0,
    "xtc": lambda params: params.xtc_probability > 0 and params.xtc_threshold <= 0.5,
    "temperature": lambda params: not is_greedy(params),
    "infill": lambda params: True,
}
_BUILDERS: dict[str, Callable[[LlamaModel, SamplingParams], Any]] = {
    "penalties": _penalties,
    "top_n_sigma": _top_n_sigma,
    "top_k": _top_k,
    "typ_p": _typical,
    "top_p": _top_p,
    "min_p": _min_p,
    "xtc": _xtc,
    "temperature": _temperature,
    "mirostat": _mirostat,
    "adaptive_p": _adaptive_p,
}
