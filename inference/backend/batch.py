"""How do planned slices reach llama.cpp without a Python call per token?"""

import ctypes
from collections.abc import Sequence

import llama_cpp
import numpy as np

from inference.backend.base import InputPart, Slice


class Batch:
    """A llama_batch whose arrays are numpy's: filled by slice assignment, never by element."""

    def __init__(self, num_tokens: int, num_sequences: int) -> None:
        self._tokens = np.zeros(num_tokens, np.int32)
        self._positions = np.zeros(num_tokens, np.int32)
        self._counts = np.ones(num_tokens, np.int32)
        self._seq_pointers = np.zeros(num_tokens, np.uintp)
        self._wants_logits = np.zeros(num_tokens, np.int8)
        self._seq_ids = np.arange(num_sequences, dtype=np.int32)
        self._seq_base = self._seq_ids.ctypes.data
        # What the arrays say of the last batch of single tokens: mostly the same as of the next.
        self._written: tuple[list[int], list[int]] = ([], [])
        self.native = llama_cpp.llama_batch(
            n_tokens=0,
            token=_pointer(self._tokens, ctypes.c_int32),
            embd=None,
            pos=_pointer(self._positions, ctypes.c_int32),
            n_seq_id=_pointer(self._counts, ctypes.c_int32),
            seq_id=_pointer(self._seq_pointers, ctypes.POINTER(ctypes.c_int32)),
            logits=_pointer(self._wants_logits, ctypes.c_int8),
        )

    def fill(self, slices: Sequence[Slice]) -> int:
        """Lay the slices into the batch; returns how many rows of logits it will give."""
        if all(len(piece.tokens) == 1 for piece in slices):
            return self._fill_single(slices)
        self._written = ([], [])
        at = num_rows = 0
        for piece in slices:
            end = at + len(piece.tokens)
            self._tokens[at:end] = piece.tokens
            self._positions[at:end] = np.arange(piece.start, piece.start + end - at)
            self._seq_pointers[at:end] = self._seq_base + 4 * piece.seq_id
            self._wants_logits[at : end - piece.num_logits] = 0
            self._wants_logits[end - piece.num_logits : end] = 1
            num_rows += piece.num_logits
            at = end
        self.native.n_tokens = at
        return num_rows

    def fill_parts(self, parts: Sequence[InputPart]) -> None:
        """Lay parts of inputs into the batch, every token an output."""
        self._written = ([], [])
        at = 0
        for part in parts:
            end = at + len(part.tokens)
            self._tokens[at:end] = part.tokens
            self._positions[at:end] = np.arange(part.start, part.start + end - at)
            self._seq_pointers[at:end] = self._seq_base + 4 * part.seq_id
            at = end
        self._wants_logits[:at] = 1
        self.native.n_tokens = at

    def _fill_single(self, slices: Sequence[Slice]) -> int:
        """Lay one token per sequence: the shape of almost every step."""
        count = len(slices)
        self._tokens[:count] = [piece.tokens[0] for piece in slices]
        self._positions[:count] = [piece.start for piece in slices]
        seq_ids, wanted = [one.seq_id for one in slices], [one.num_logits for one in slices]
        if (seq_ids, wanted) != self._written:
            self._seq_pointers[:count] = [self._seq_base + 4 * seq_id for seq_id in seq_ids]
            self._wants_logits[:count] = wanted
            self._written = (seq_ids, wanted)
        self.native.n_tokens = count
        return sum(wanted)


def _pointer(array: np.ndarray, kind: type) -> ctypes._Pointer:  # type: ignore[type-arg]
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))
