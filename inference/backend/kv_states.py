"""How do computed tokens move: within a sequence, between sequences, and out of the KV cache?"""

import ctypes
import logging

import llama_cpp
import numpy as np

logger = logging.getLogger(__name__)


class KvStates:
    """The sequences of one context, as far as they are cut, copied, saved and restored.

    A sequence of a recurrent model has one state, which cannot be cut; of a sliding window, copies
    have the last tokens only. llama.cpp may cut these to something incomplete without a word, so
    each result is looked at: what is not complete is emptied.
    """

    def __init__(self, context: int, model: int, *, is_unified: bool) -> None:
        self._context = context
        self._memory = llama_cpp.llama_get_memory(context)
        self._is_unified = is_unified
        self.window = _window(model)
        self._saved: tuple[int, memoryview] | None = None

    def keep(self, seq_id: int, num_tokens: int) -> int:
        """Drop all but the first tokens of a sequence; returns how many stayed: all or none."""
        self._forget_saved(seq_id)
        is_cut = num_tokens and llama_cpp.llama_memory_seq_rm(self._memory, seq_id, num_tokens, -1)
        if is_cut and self._is_complete(seq_id, num_tokens):
            return num_tokens
        llama_cpp.llama_memory_seq_rm(self._memory, seq_id, -1, -1)
        return 0

    @property
    def can_shift(self) -> bool:
        """Whether cells can be turned to other positions, and are all there to be turned."""
        return self.window is None and bool(llama_cpp.llama_memory_can_shift(self._memory))

    def shift(self, seq_id: int, num_keep: int, num_drop: int) -> None:
        """Drop tokens behind the first, and move what follows up to them."""
        self._forget_saved(seq_id)
        end = num_keep + num_drop
        llama_cpp.llama_memory_seq_rm(self._memory, seq_id, num_keep, end)
        llama_cpp.llama_memory_seq_add(self._memory, seq_id, end, -1, -num_drop)

    def copy(self, source: int, target: int, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of another; returns how many it holds now."""
        if self._is_unified:
            self.keep(target, 0)
            llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, num_tokens)
            return self.keep(target, num_tokens)
        state = self._save_once(source)
        return self.restore(target, state, num_tokens) if state else self.keep(target, 0)

    def share(self, source: int, target: int, num_tokens: int) -> None:
        """Have a sequence use the cells of another for their first tokens, which are the same."""
        self._forget_saved(target)
        llama_cpp.llama_memory_seq_rm(self._memory, target, 0, num_tokens)
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, num_tokens)

    def save(self, seq_id: int, max_bytes: int) -> memoryview | None:
        """Copy the state of a sequence out; None where it is too large or llama.cpp refuses."""
        if self._saved and self._saved[0] == seq_id:
            state = self._saved[1]
            return state if state.nbytes <= max_bytes else None
        size = llama_cpp.llama_state_seq_get_size(self._context, seq_id)
        if not 0 < size <= max_bytes:
            return None
        state = np.empty(size, np.uint8).data
        if llama_cpp.llama_state_seq_get_data(self._context, _pointer(state), size, seq_id) != size:
            logger.warning("the state of a sequence could not be saved")
            return None
        return state

    def restore(self, seq_id: int, state: memoryview, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of a saved one; returns how many it holds now."""
        self._forget_saved(seq_id)
        pointer = _pointer(state)
        if not llama_cpp.llama_state_seq_set_data(self._context, pointer, state.nbytes, seq_id):
            logger.warning("a prefix of %d tokens could not be restored", num_tokens)
            return self.keep(seq_id, 0)
        return self.keep(seq_id, num_tokens)

    def note_decode(self) -> None:
        """Know that sequences have changed."""
        self._saved = None

    def _save_once(self, seq_id: int) -> memoryview | None:
        """Save a state that several sequences may get before anything is computed again."""
        if self._saved is None or self._saved[0] != seq_id:
            state = self.save(seq_id, 1 << 62)
            self._saved = (seq_id, state) if state else None
        return self._saved[1] if self._saved else None

    def _forget_saved(self, seq_id: int) -> None:
        if self._saved and self._saved[0] == seq_id:
            self._saved = None

    def _is_complete(self, seq_id: int, num_tokens: int) -> bool:
        """Tell whether a sequence has all that the next token will look at."""
        if llama_cpp.llama_memory_seq_pos_max(self._memory, seq_id) != num_tokens - 1:
            return False
        if not self.window:
            return True
        oldest = llama_cpp.llama_memory_seq_pos_min(self._memory, seq_id)
        return bool(oldest <= max(0, num_tokens - self.window))


def _window(model: int) -> int | None:
    """Tell for how many last tokens a saved state of a model is complete; None for all."""
    if llama_cpp.llama_model_is_recurrent(model) or llama_cpp.llama_model_is_hybrid(model):
        return 0
    window = llama_cpp.llama_model_n_swa(model)
    return max(0, window) if window else None


def _pointer(state: memoryview) -> "ctypes._Pointer[ctypes.c_uint8]":
    address = np.frombuffer(state, np.uint8).ctypes
    return address.data_as(ctypes.POINTER(ctypes.c_uint8))
