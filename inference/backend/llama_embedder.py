"""How do many inputs become vectors in one llama.cpp batch?"""

from collections.abc import Sequence
from typing import Any, cast

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from inference.backend import native
from inference.backend.base import DecodeError, Embedder, InputPart
from inference.backend.batch import Batch
from inference.backend.kv_pages import untouched_pages_released
from inference.backend.llama import open_context, view_floats
from inference.backend.llama_model import LlamaModel
from inference.backend.params import base_params
from inference.backend.pooling import NATIVE_POOLING, choose_pooling
from inference.backend.row_pool import Pooling, RowPool
from inference.protocol.replicas import RuntimeProfile
from inference.protocol.sizes import MAX_INPUTS

_UNBOUNDED = 2**62

Rows = NDArray[np.float32]


def open_embedder(model: LlamaModel, profile: RuntimeProfile, *, is_rank: bool) -> Embedder:
    """Make the context that suits the model, and have its facts say so; raises EngineError."""
    is_causal = _is_causal(model, profile)
    pooling = choose_pooling(model, profile.pooling, is_rank=is_rank, is_causal=is_causal)
    num_dimensions = int(
        llama_cpp.llama_model_n_cls_out(model.handle)
        if is_rank
        else llama_cpp.llama_model_n_embd_out(model.handle)
    )
    model.describe_vectors(pooling, num_dimensions)
    kind = CausalEmbedder if is_causal else EncoderEmbedder
    return kind(model, profile, pooling, num_dimensions)


class EncoderEmbedder:
    """Reads each input whole, as BERT does: every token attends to all others of its input."""

    can_split = False
    num_cells = _UNBOUNDED
    max_batch_inputs = MAX_INPUTS

    def __init__(
        self, model: LlamaModel, profile: RuntimeProfile, pooling: str, num_dimensions: int
    ) -> None:
        self.model = model
        self.max_batch_tokens = profile.step_token_budget
        self._is_pooled, self._num_columns = pooling != "none", num_dimensions
        size = _round_up(max(model.context_length, self.max_batch_tokens))
        self._context = open_context(model, _params(profile, pooling, size, size))
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = Batch(size, MAX_INPUTS)

    def embed(self, parts: Sequence[InputPart]) -> list[Rows]:
        """Compute one batch; raises DecodeError."""
        self._batch.fill_parts(parts)
        if self._memory:
            llama_cpp.llama_memory_clear(self._memory, False)
        code = llama_cpp.llama_encode(self._context, self._batch.native)
        if code != 0:
            raise DecodeError(code)
        if self._is_pooled:
            return [_read_vector(self._context, part, self._num_columns) for part in parts]
        return [rows.copy() for rows in _read_rows(self._context, parts, self._num_columns)]

    def drop(self, seq_id: int) -> None:
        """Do nothing: each batch forgets the one before it."""

    def close(self) -> None:
        """Free the context; the model stays."""
        context, self._context = self._context, 0
        if context:
            llama_cpp.llama_free(context)


class CausalEmbedder:
    """Reads inputs part by part, as generation does, so that a long one never takes a long step.

    llama.cpp pools within one batch only, so the rows of tokens are pooled here. Scores alone come
    from its graph: they need the last token, which is in the last part.
    """

    can_split = True
    max_batch_inputs = MAX_INPUTS

    def __init__(
        self, model: LlamaModel, profile: RuntimeProfile, pooling: str, num_dimensions: int
    ) -> None:
        self.model = model
        self.max_batch_tokens = profile.step_token_budget
        self.num_cells = model.context_length + self.max_batch_tokens
        self._num_columns = num_dimensions
        self._spoiled: set[int] = set()
        self._pool: RowPool | None = None
        if pooling != "rank":
            self._pool, pooling = RowPool(cast("Pooling", pooling), num_dimensions), "none"
        size = _round_up(self.max_batch_tokens)
        with untouched_pages_released():
            params = _params(profile, pooling, _round_up(self.num_cells), size)
            self._context = open_context(model, params)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = Batch(size, MAX_INPUTS)

    def embed(self, parts: Sequence[InputPart]) -> list[Rows]:
        """Compute one batch; raises DecodeError."""
        if any(part.seq_id in self._spoiled for part in parts):
            raise DecodeError(0)
        self._batch.fill_parts(parts)
        code = llama_cpp.llama_decode(self._context, self._batch.native)
        if code != 0:
            self._take_back(parts)
            raise DecodeError(code)
        if self._pool is None:
            return [self._read_scores(part) for part in parts]
        rows = _read_rows(self._context, parts, self._num_columns)
        return [
            self._pool.add(part.seq_id, own, is_last=part.is_last)
            for part, own in zip(parts, rows, strict=True)
        ]

    def drop(self, seq_id: int) -> None:
        """Forget an input, whole or begun."""
        self._spoiled.discard(seq_id)
        llama_cpp.llama_memory_seq_rm(self._memory, seq_id, -1, -1)
        if self._pool is not None:
            self._pool.drop(seq_id)

    def close(self) -> None:
        """Free the context; the model stays."""
        context, self._context = self._context, 0
        if context:
            llama_cpp.llama_free(context)

    def _take_back(self, parts: Sequence[InputPart]) -> None:
        """Undo a batch that failed; an input whose state cannot go back is spoiled."""
        for part in parts:
            if not llama_cpp.llama_memory_seq_rm(self._memory, part.seq_id, part.start, -1):
                self._spoiled.add(part.seq_id)

    def _read_scores(self, part: InputPart) -> Rows:
        if not part.is_last:
            return np.empty((0, self._num_columns), np.float32)
        return _read_vector(self._context, part, self._num_columns)


def _is_causal(model: LlamaModel, profile: RuntimeProfile) -> bool:
    """Tell whether tokens see only those before them; a small context is made to ask."""
    context = open_context(model, _params(profile, "none", MAX_INPUTS, MAX_INPUTS))
    try:
        return (
            bool(llama_cpp.llama_get_memory(context))
            and bool(llama_cpp.llama_get_causal_attn(context))
            and not llama_cpp.llama_model_has_encoder(model.handle)
        )
    finally:
        llama_cpp.llama_free(context)


def _params(profile: RuntimeProfile, pooling: str, num_cells: int, num_tokens: int) -> Any:
    """Pooling works within one physical batch, so that logical and physical size are one."""
    params = base_params(profile)
    params.embeddings = True
    params.pooling_type = NATIVE_POOLING[pooling]
    params.n_ctx, params.n_batch, params.n_ubatch = num_cells, num_tokens, num_tokens
    params.n_seq_max = MAX_INPUTS
    params.kv_unified = True
    return params


def _round_up(num_tokens: int) -> int:
    """Give a multiple of the inputs: llama.cpp ends the process for a batch that is none."""
    return -(-num_tokens // MAX_INPUTS) * MAX_INPUTS


def _read_vector(context: int, part: InputPart, num_columns: int) -> Rows:
    address = native.address_of(llama_cpp.llama_get_embeddings_seq(context, part.seq_id))
    if not address:
        raise DecodeError(0)
    return view_floats(address, 1, num_columns).copy()


def _read_rows(context: int, parts: Sequence[InputPart], num_columns: int) -> list[Rows]:
    """View the rows of each part's tokens, valid until the next batch."""
    address = native.address_of(llama_cpp.llama_get_embeddings(context))
    if not address:
        raise DecodeError(0)
    ends = np.cumsum([len(part.tokens) for part in parts])
    return np.split(view_floats(address, int(ends[-1]), num_columns), ends[:-1])
