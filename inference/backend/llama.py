"""How does a planned step reach llama.cpp? One context, a KV sequence per slot."""

import ctypes
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from inference.backend import native
from inference.backend.base import DecodeError, Sampler, Sharing, Slice
from inference.backend.batch import Batch
from inference.backend.kv_pages import untouched_pages_released
from inference.backend.kv_states import KvStates
from inference.backend.llama_model import LlamaModel
from inference.backend.lora import AdapterSwitch
from inference.backend.params import generation_params
from inference.backend.samplers import Samplers
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import GenerationJob, Loras
from inference.protocol.replicas import RuntimeProfile

logger = logging.getLogger(__name__)


class LlamaBackend:
    """One llama.cpp context for generation. Only the engine thread may call it, once running."""

    def __init__(self, model: LlamaModel, profile: RuntimeProfile) -> None:
        self.model = model
        num_tokens = profile.max_step_tokens
        with untouched_pages_released():
            self._context = open_context(model, generation_params(model.context_length, profile))
        self._states = KvStates(self._context, model.handle, is_unified=profile.is_kv_unified)
        self._adapters = AdapterSwitch(self._context, model.adapters)
        self._batch = Batch(num_tokens, profile.num_slots)
        self._samplers = Samplers(model)
        self._rows = np.empty((0, model.num_vocab), np.float32)
        self._rows_address = 0

    def use_adapters(self, loras: Loras) -> None:
        """Compute with these LoRA adapters from now on, and with no others."""
        self._adapters.use(loras)

    def decode(self, slices: Sequence[Slice]) -> NDArray[np.float32]:
        """Compute slices, ordered by sequence id; raises DecodeError."""
        num_rows = self._batch.fill(slices)
        self._states.note_decode()
        code = llama_cpp.llama_decode(self._context, self._batch.native)
        if code != 0:
            raise DecodeError(code)
        return self._view_rows(num_rows)

    def open_sampler(self, job: GenerationJob) -> Sampler:
        """Build the sampler of a job; raises EngineError. Safe to call from any thread."""
        return self._samplers.open(job)

    @property
    def can_shift(self) -> bool:
        """Whether computed tokens can be moved to lower positions."""
        return self._states.can_shift

    def shift(self, seq_id: int, num_keep: int, num_drop: int) -> None:
        """Drop tokens behind the first of a sequence, and move what follows up to them."""
        self._states.shift(seq_id, num_keep, num_drop)

    @property
    def state_window(self) -> int | None:
        """For how many of its last tokens a copied or saved state is complete; None for all."""
        return self._states.window

    def keep_prefix(self, seq_id: int, num_tokens: int) -> int:
        """Drop all but the first tokens of a sequence; returns how many stayed: all or none."""
        return self._states.keep(seq_id, num_tokens)

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of another; returns how many it holds now."""
        return self._states.copy(source, target, num_tokens)

    def share_prefix(self, source: int, target: int, num_tokens: int) -> None:
        """Have a sequence use another's cells for the tokens with which both begin.

        Only where sequences share cells at all.
        """
        self._states.share(source, target, num_tokens)

    def save_state(self, seq_id: int, max_bytes: int) -> memoryview | None:
        """Copy the state of a sequence out of the cache; None where it is too large."""
        return self._states.save(seq_id, max_bytes)

    def restore_state(self, seq_id: int, state: memoryview, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of a saved state; returns how many it holds."""
        return self._states.restore(seq_id, state, num_tokens)

    def sharing_among(self, seq_ids: Iterable[int]) -> Sharing:
        """Tell that each sequence attends to its beginning by itself."""
        return Sharing()

    def close(self) -> None:
        """Free the context; the model stays."""
        self._samplers.close()
        context, self._context = self._context, 0
        if context:
            llama_cpp.llama_free(context)

    def _view_rows(self, num_rows: int) -> NDArray[np.float32]:
        """View the logits in place; the view is remade only when llama.cpp moves its buffer."""
        if num_rows == 0:
            return self._rows[:0]
        address = native.get_logits(self._context)
        if address != self._rows_address or num_rows > len(self._rows):
            self._rows = view_floats(address, num_rows, self.model.num_vocab)
            self._rows_address = address
        return self._rows[:num_rows]


def view_floats(address: int, num_rows: int, num_columns: int) -> NDArray[np.float32]:
    """View native memory as a table, without a copy."""
    raw: Any = (ctypes.c_float * (num_rows * num_columns)).from_address(address)
    return np.frombuffer(raw, np.float32).reshape(num_rows, num_columns)


def open_context(model: LlamaModel, params: Any) -> int:
    """Make a context; raises EngineError."""
    context = llama_cpp.llama_init_from_model(model.handle, params)
    if not context:
        reason = native.last_errors() or "not enough memory, or the profile does not fit the model"
        raise EngineError(ErrorCode.ENGINE_FAILED, f"The context could not be made: {reason}")
    return int(context)
