"""How do many inputs become pooled vectors in one llama.cpp batch?"""

from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from inference.backend import native
from inference.backend.base import DecodeError
from inference.backend.batch import Batch
from inference.backend.llama import open_context, view_floats
from inference.backend.llama_model import LlamaModel
from inference.backend.params import base_params
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import RuntimeProfile

_MAX_INPUTS = 64
_POOLING = {
    "": llama_cpp.LLAMA_POOLING_TYPE_UNSPECIFIED,
    "mean": llama_cpp.LLAMA_POOLING_TYPE_MEAN,
    "cls": llama_cpp.LLAMA_POOLING_TYPE_CLS,
    "last": llama_cpp.LLAMA_POOLING_TYPE_LAST,
    "rank": llama_cpp.LLAMA_POOLING_TYPE_RANK,
}


class LlamaEmbedder:
    """One context with pooling: for encoders such as BERT, and for causal models alike."""

    max_batch_inputs = _MAX_INPUTS

    def __init__(self, model: LlamaModel, profile: RuntimeProfile) -> None:
        self.model = model
        self.max_batch_tokens = max(model.context_length, profile.step_token_budget)
        self._context = self._open(profile)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = Batch(self.max_batch_tokens, _MAX_INPUTS)
        is_rank = llama_cpp.llama_pooling_type(self._context) == llama_cpp.LLAMA_POOLING_TYPE_RANK
        self._num_columns = int(
            llama_cpp.llama_model_n_cls_out(model.handle)
            if is_rank
            else llama_cpp.llama_model_n_embd_out(model.handle)
        )

    def embed(self, inputs: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Compute one vector per input in one batch; raises DecodeError."""
        self._batch.fill_pooled(inputs)
        if self._memory:
            llama_cpp.llama_memory_clear(self._memory, False)
            code = llama_cpp.llama_decode(self._context, self._batch.native)
        else:
            code = llama_cpp.llama_encode(self._context, self._batch.native)
        if code != 0:
            raise DecodeError(code)
        return np.concatenate([self._vector(seq_id) for seq_id in range(len(inputs))])

    def close(self) -> None:
        """Free the context; the model stays."""
        context, self._context = self._context, 0
        if context:
            llama_cpp.llama_free(context)

    def _vector(self, seq_id: int) -> NDArray[np.float32]:
        pointer = llama_cpp.llama_get_embeddings_seq(self._context, seq_id)
        address = native.address_of(pointer)
        if not address:
            raise DecodeError(0)
        return view_floats(address, 1, self._num_columns)

    def _open(self, profile: RuntimeProfile) -> int:
        """Make the context; a model that says nothing of pooling gets that of its last token."""
        if profile.pooling not in _POOLING:
            known = ", ".join(name for name in _POOLING if name)
            raise EngineError(
                ErrorCode.ENGINE_FAILED, f"Unknown pooling '{profile.pooling}'; known are {known}."
            )
        context = open_context(self.model, self._params(profile, _POOLING[profile.pooling]))
        if llama_cpp.llama_pooling_type(context) != llama_cpp.LLAMA_POOLING_TYPE_NONE:
            return context
        llama_cpp.llama_free(context)
        last = llama_cpp.LLAMA_POOLING_TYPE_LAST
        return open_context(self.model, self._params(profile, last))

    def _params(self, profile: RuntimeProfile, pooling: int) -> Any:
        """An input must lie in one physical batch, so that logical and physical size are one."""
        params = base_params(profile)
        params.embeddings = True
        params.pooling_type = pooling
        params.n_ctx = params.n_batch = params.n_ubatch = self.max_batch_tokens
        params.n_seq_max = _MAX_INPUTS
        params.kv_unified = True
        return params
