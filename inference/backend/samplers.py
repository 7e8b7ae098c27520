"""How does one sequence choose its next token, with every knob llama-server has?

Greedy choice without penalties or grammar stays in numpy (greedy.py). Everything else runs
through a chain of llama.cpp's own samplers over an array of candidates that all sequences of a
backend share, since only the engine thread samples.
"""

import ctypes
import secrets
from collections.abc import Callable
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from inference.backend import native
from inference.backend.base import Choice, Row, Sampler
from inference.backend.grammar_sampler import Constraint
from inference.backend.greedy import GreedySampler, LogitEdits
from inference.backend.llama_model import LlamaModel
from inference.backend.logprobs import logits_to_logprob, probs_to_logprob
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import GenerationJob
from inference.protocol.sampling import SamplingParams

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
_MIROSTAT_M = 100
_LIKELY_MARGIN = np.float32(8)


class Candidates:
    """The array llama.cpp's samplers sort, cut and weigh; refilled for each sampled token."""

    def __init__(self, num_vocab: int) -> None:
        self._fresh = np.zeros(num_vocab, _CANDIDATE)
        self._fresh["id"] = np.arange(num_vocab)
        self._array = self._fresh.copy()
        # numpy copies bytes at once, but the fields of a structure one by one.
        self._fresh_bytes, self._bytes = self._fresh.view(np.uint8), self._array.view(np.uint8)
        self._logits = self._array["logit"]
        self._start = ctypes.cast(self._array.ctypes.data, llama_cpp.llama_token_data_p)
        self._native = llama_cpp.llama_token_data_array()
        self._address = ctypes.addressof(self._native)

    def fill(self, row: Row) -> None:
        """Start over with the whole vocabulary."""
        self._bytes[:] = self._fresh_bytes
        self._logits[:] = row
        self._set(self._start, len(self._array))

    def fill_best(self, row: Row, num_needed: int) -> None:
        """Start over with the likely tokens, at least as many as a top-k that comes first keeps."""
        ids = np.flatnonzero(row >= row.max() - _LIKELY_MARGIN)
        if not num_needed <= len(ids) <= len(row) // 4:
            self.fill(row)
            return
        self._array["id"][: len(ids)] = ids
        self._logits[: len(ids)] = row[ids]
        self._set(self._start, len(ids))

    def apply(self, sampler: int) -> None:
        """Let a sampler work on what is left."""
        native.sampler_apply(sampler, self._address)

    def selected(self) -> int:
        """Give the chosen token, or -1 where nothing possible was left."""
        at = self._native.selected
        if not 0 <= at < self._native.size or not self._native.data[at].logit > -np.inf:
            return -1
        return int(self._native.data[at].id)

    def left(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give ids and probabilities of what sampling left."""
        kind = ctypes.c_byte * (_CANDIDATE.itemsize * self._native.size)
        view = np.frombuffer(kind.from_address(ctypes.addressof(self._native.data[0])), _CANDIDATE)
        return view["id"].copy(), view["p"].copy()

    def _set(self, start: Any, size: int) -> None:
        self._native.data, self._native.size = start, size
        self._native.selected, self._native.sorted = -1, False


class ChainSampler:
    """A chain of native samplers, freed by close()."""

    def __init__(self, model: LlamaModel, job: GenerationJob, candidates: Candidates) -> None:
        self._model, self._candidates = model, candidates
        self._num_logprobs, self._is_post = job.num_logprobs, job.post_sampling_probs
        self._edits = LogitEdits(job, model.eog_tokens)
        self._has_memory = _has_penalties(job.sampling) or _has_dry(job.sampling)
        self._num_top_k = _leading_top_k(job.sampling)
        self._constraint = Constraint(model, job.sampling) if job.sampling.grammar else None
        self._chain = _open_chain(model, job.sampling)
        if self._has_memory:
            for token in job.prompt_tokens[-_memory_length(model, job.sampling) :]:
                native.sampler_accept(self._chain, token)

    def sample(self, row: Row) -> Choice:
        """Choose a token; the grammar judges the choice alone before it must judge all tokens."""
        raw = row.copy() if self._num_logprobs is not None and self._edits.is_needed else row
        if self._edits.is_needed:
            self._edits.apply(row)
        token = self._choose(row)
        if token < 0:
            token = int(self._model.eog_tokens[0]) if self._model.eog_tokens.size else 0
            return Choice(token, self._logprob(raw, token))
        logprob = self._logprob(raw, token)
        self.accept(token)
        return Choice(token, logprob)

    def accept(self, token: int) -> None:
        """Let penalties and grammar see a chosen token."""
        self._edits.advance()
        if self._has_memory:
            native.sampler_accept(self._chain, token)
        if self._constraint:
            self._constraint.accept(token)

    def close(self) -> None:
        """Give the native memory back; idempotent."""
        chain, self._chain = self._chain, 0
        if chain:
            native.sampler_free(chain)
        if self._constraint:
            self._constraint.close()

    def _choose(self, row: Row) -> int:
        candidates = self._candidates
        if self._num_top_k:
            candidates.fill_best(row, self._num_top_k)
        else:
            candidates.fill(row)
        candidates.apply(self._chain)
        token = candidates.selected()
        if not self._constraint or (token >= 0 and self._constraint.allows(token)):
            return token
        self._constraint.restrict(row)
        candidates.fill(row)
        candidates.apply(self._chain)
        return candidates.selected()

    def _logprob(self, raw: Row, token: int) -> Any:
        if self._num_logprobs is None:
            return None
        if self._is_post:
            ids, probs = self._candidates.left()
            return probs_to_logprob(self._model, ids, probs, token, self._num_logprobs)
        return logits_to_logprob(self._model, raw, token, self._num_logprobs)


def open_sampler(model: LlamaModel, job: GenerationJob, candidates: Candidates) -> Sampler:
    """Build the cheapest sampler that does what the job asks; raises EngineError."""
    params = job.sampling
    _check(params, model.num_vocab)
    is_plain = not (params.grammar or _has_penalties(params) or _has_dry(params))
    if params.temperature <= 0 and params.mirostat == 0 and is_plain:
        return GreedySampler(model, job, model.eog_tokens)
    return ChainSampler(model, job, candidates)


def _check(params: SamplingParams, num_vocab: int) -> None:
    unknown = [name for name in params.samplers if name not in _BUILDERS]
    if unknown:
        raise EngineError(ErrorCode.INVALID_SAMPLING, f"Unknown sampler '{unknown[0]}'.")
    if params.repeat_penalty <= 0:
        raise EngineError(ErrorCode.INVALID_SAMPLING, "repeat_penalty must be above 0.")
    if params.mirostat not in (0, 1, 2):
        raise EngineError(ErrorCode.INVALID_SAMPLING, "mirostat must be 0, 1 or 2.")
    for token, _ in params.logit_bias:
        if not 0 <= token < num_vocab:
            raise EngineError(
                ErrorCode.INVALID_TOKEN_ID,
                f"logit_bias names token {token}, outside the vocabulary.",
            )


def _open_chain(model: LlamaModel, params: SamplingParams) -> int:
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    seed = secrets.randbits(32) if params.seed is None else params.seed & 0xFFFFFFFF
    names = ("penalties", "dry") if params.temperature <= 0 else params.samplers
    if params.mirostat and params.temperature > 0:
        names = ("penalties", "dry", "temperature")
    for name in names:
        sampler = _BUILDERS[name](model, params, seed)
        if sampler:
            llama_cpp.llama_sampler_chain_add(chain, sampler)
    llama_cpp.llama_sampler_chain_add(chain, _open_selector(model, params, seed))
    return native.address_of(chain)


def _open_selector(model: LlamaModel, params: SamplingParams, seed: int) -> Any:
    """Build the last sampler, the one that picks."""
    if params.temperature <= 0:
        return llama_cpp.llama_sampler_init_greedy()
    if params.mirostat == 1:
        return llama_cpp.llama_sampler_init_mirostat(
            model.num_vocab, seed, params.mirostat_tau, params.mirostat_eta, _MIROSTAT_M
        )
    if params.mirostat == 2:
        return llama_cpp.llama_sampler_init_mirostat_v2(
            seed, params.mirostat_tau, params.mirostat_eta
        )
    return llama_cpp.llama_sampler_init_dist(seed)


def _has_penalties(params: SamplingParams) -> bool:
    has_effect = params.repeat_penalty != 1 or params.frequency_penalty or params.presence_penalty
    return bool(has_effect) and params.repeat_last_n != 0 and "penalties" in params.samplers


def _has_dry(params: SamplingParams) -> bool:
    is_on = params.dry_multiplier > 0 and params.dry_base >= 1 and params.dry_penalty_last_n != 0
    return is_on and "dry" in params.samplers


def _leading_top_k(params: SamplingParams) -> int:
    """Tell how many tokens matter where top-k is the first sampler that has any effect, else 0."""
    if params.temperature <= 0 or params.mirostat or _has_penalties(params) or _has_dry(params):
        return 0
    for name in params.samplers:
        if name == "top_k":
            return max(params.top_k, 0)
        if name not in ("penalties", "dry") and (name != "top_n_sigma" or params.top_n_sigma > 0):
            return 0
    return 0


def _memory_length(model: LlamaModel, params: SamplingParams) -> int:
    """Tell how many tokens back the penalties look."""
    lengths = [params.repeat_last_n] if _has_penalties(params) else []
    if _has_dry(params):
        lengths.append(params.dry_penalty_last_n)
    return max(_whole(model, length) for length in lengths)


def _whole(model: LlamaModel, length: int) -> int:
    return model.context_length if length < 0 else min(length, model.context_length)


def _penalties(model: LlamaModel, params: SamplingParams, _seed: int) -> Any:
    if not _has_penalties(params):
        return None
    return llama_cpp.llama_sampler_init_penalties(
        model.num_vocab,
        _whole(model, params.repeat_last_n),
        params.repeat_penalty,
        params.frequency_penalty,
        params.presence_penalty,
    )


def _dry(model: LlamaModel, params: SamplingParams, _seed: int) -> Any:
    if not _has_dry(params):
        return None
    breakers = [word.encode("utf-8", "replace") for word in params.dry_sequence_breakers]
    return llama_cpp.llama_sampler_init_dry(
        model.vocab,
        params.dry_multiplier,
        params.dry_base,
        params.dry_allowed_length,
        _whole(model, params.dry_penalty_last_n),
        (ctypes.c_char_p * len(breakers))(*breakers),
        len(breakers),
    )


def _top_k(_model: LlamaModel, params: SamplingParams, _seed: int) -> Any:
    return llama_cpp.llama_sampler_init_top_k(params.top_k) if params.top_k > 0 else None


def _top_n_sigma(_model: LlamaModel, params: SamplingParams, _seed: int) -> Any:
    if params.top_n_sigma <= 0:
        return None
    return llama_cpp.llama_sampler_init_top_n_sigma(params.top_n_sigma)


def _top_p(_model: LlamaModel, params: SamplingParams, _seed: int) -> Any:
    if params.top_p >= 1:
        return None
    return llama_cpp.llama_sampler_init_top_p(params.top_p, params.min_keep)


def _min_p(_model: LlamaModel, params: SamplingParams, _seed: int) -> Any:
    if params.min_p <= 0:
        return None
    return llama_cpp.llama_sampler_init_min_p(params.min_p, params.min_keep)


def _typical(_model: LlamaModel, params: SamplingParams, _seed: int) -> Any:
    if params.typical_p >= 1:
        return None
    return llama_cpp.llama_sampler_init_typical(params.typical_p, params.min_keep)


def _xtc(_model: LlamaModel, params: SamplingParams, seed: int) -> Any:
    if params.xtc_probability <= 0 or params.xtc_threshold > 0.5:
        return None
    return llama_cpp.llama_sampler_init_xtc(
        params.xtc_probability, params.xtc_threshold, params.min_keep, seed
    )


def _temperature(_model: LlamaModel, params: SamplingParams, _seed: int) -> Any:
    return llama_cpp.llama_sampler_init_temp_ext(
        params.temperature, params.dynatemp_range, params.dynatemp_exponent
    )


_BUILDERS: dict[str, Callable[[LlamaModel, SamplingParams, int], Any]] = {
    "penalties": _penalties,
    "dry": _dry,
    "top_n_sigma": _top_n_sigma,
    "top_k": _top_k,
    "typ_p": _typical,
    "top_p": _top_p,
    "min_p": _min_p,
    "xtc": _xtc,
    "temperature": _temperature,
}
