"""Contexts without a model: they remember tokens, and answer with what they remember."""

import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from inference.backend.base import NO_CELLS, DecodeError, Rows, Slice

NUM_VOCAB = 8
_F32, _WIDTH = 0, 2


def row_of(tokens: Sequence[int]) -> Rows:
    """Give the row of logits that stands for exactly these tokens."""
    rng = np.random.default_rng(hash(tuple(tokens)) & 0xFFFFFFFF)
    return rng.random(NUM_VOCAB, np.float32)


class TokenContext:
    """A context as llama.cpp has it: a stream for each sequence, or cells that they share.

    A cell is a list of its position and token; shared cells are the same list.
    """

    num_vocab = NUM_VOCAB

    def __init__(self, num_slots: int, num_cells: int | None = None) -> None:
        self.model = self
        self.num_cells = num_cells
        self.num_streams = num_slots if num_cells is None else 1
        self.cells: list[list[list[int]]] = [[] for _ in range(num_slots)]
        self.fails_with = 0
        self.refuses_states = False
        self.state_window = None
        self.num_saves = self.size_bytes = 0
        self._unturned: set[int] = set()
        self.loras: Any = ()

    def tokens(self, seq_id: int) -> list[int]:
        """Give what a sequence holds."""
        return [token for _, token in self.cells[seq_id]]

    def facts(self) -> Any:
        """Tell how large the weights are: as if this were the model too."""
        return SimpleNamespace(size_bytes=self.size_bytes)

    def use_adapters(self, loras: Any) -> None:
        self.loras = loras

    def decode(self, slices: Sequence[Slice]) -> Rows:
        """Compute tokens, or the first slice of them before it fails.

        An empty sequence may begin anywhere, as llama.cpp has it.
        """
        code, self.fails_with = self.fails_with, 0
        if code and code != NO_CELLS:
            self.decode(slices[:1])
        if code:
            raise DecodeError(code)
        self._unturned.clear()
        rows = []
        for piece in slices:
            held = self.cells[piece.seq_id]
            if held and piece.start != len(held):
                raise DecodeError(-1)
            for token in piece.tokens:
                held.append([len(held), token])
                rows.append(row_of(self.tokens(piece.seq_id)))
            del rows[len(rows) - len(piece.tokens) : len(rows) - piece.num_logits]
        self.check_room()
        return np.array(rows, np.float32).reshape(len(rows), NUM_VOCAB)

    def check_room(self) -> None:
        """Assert that no more cells are in use than there are."""
        used = {id(cell) for held in self.cells for cell in held}
        assert self.num_cells is None or len(used) <= self.num_cells

    def keep_prefix(self, seq_id: int, num_tokens: int) -> int:
        held = self.cells[seq_id]
        kept = num_tokens if num_tokens <= len(held) else 0
        del held[kept:]
        return kept

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> int:
        cells = self.cells[source][:num_tokens]
        self.cells[target] = cells if self.num_cells else [list(cell) for cell in cells]
        return self.keep_prefix(target, num_tokens)

    def share_prefix(self, source: int, target: int, num_tokens: int) -> None:
        shared = self.cells[source][:num_tokens]
        assert shared == self.cells[target][:num_tokens]
        self.cells[target][:num_tokens] = shared

    def shift(self, seq_id: int, num_keep: int, num_drop: int) -> None:
        assert self.num_cells is None, "cells of others would move"
        del self.cells[seq_id][num_keep : num_keep + num_drop]
        self.cells[seq_id] = [[at, cell[1]] for at, cell in enumerate(self.cells[seq_id])]
        self._unturned.add(seq_id)

    def save_state(self, seq_id: int, max_bytes: int) -> memoryview | None:
        """Write what llama.cpp would, with a layer whose keys and values are the tokens."""
        tokens = self.tokens(seq_id)
        self.num_saves += 1
        assert seq_id not in self._unturned, "keys have another position than their cells"
        if not tokens or self.refuses_states:
            return None
        state = self._write(seq_id, tokens)
        return memoryview(state) if len(state) <= max_bytes else None

    def restore_state(self, seq_id: int, state: memoryview, num_tokens: int) -> int:
        self.cells[seq_id] = []
        tokens = self._read(state)
        self.cells[seq_id] = [[at, token] for at, token in enumerate(tokens)]
        self.check_room()
        return self.keep_prefix(seq_id, num_tokens)

    def close(self) -> None:
        self.cells = []

    def _write(self, seq_id: int, tokens: list[int]) -> bytes:
        counts = [0] * self.num_streams
        counts[seq_id if self.num_streams > 1 else 0] = len(tokens)
        state = struct.pack("<IiI", 7, seq_id, self.num_streams)
        for count in counts:
            state += struct.pack("<I", count)
            if count:
                state += self._write_cells(seq_id, tokens)
        return state

    def _write_cells(self, seq_id: int, tokens: list[int]) -> bytes:
        cells = b"".join(struct.pack("<iIi", at, 1, seq_id) for at in range(len(tokens)))
        keys = np.array(tokens, np.int32)
        values = np.stack([keys, -keys], axis=1)
        is_transposed = self.num_cells is not None
        body = cells + struct.pack("<II", is_transposed, 1)
        body += struct.pack("<iQ", _F32, 4) + keys.tobytes()
        if is_transposed:
            return body + struct.pack("<iII", _F32, 4, _WIDTH) + values.T.tobytes()
        return body + struct.pack("<iQ", _F32, 4 * _WIDTH) + values.tobytes()

    def _read(self, state: memoryview) -> list[int]:
        _, _, num_streams = struct.unpack_from("<IiI", state)
        assert num_streams == self.num_streams
        at, count = 12, 0
        while not count:
            (count,) = struct.unpack_from("<I", state, at)
            at += 4
        at += 12 * count
        is_transposed, num_layers = struct.unpack_from("<II", state, at)
        assert bool(is_transposed) == (self.num_cells is not None) and num_layers == 1
        keys = np.frombuffer(state, np.int32, count, at + 20)
        at += 20 + 4 * count + 12
        values = np.frombuffer(state, np.int32, count * _WIDTH, at)
        values = values.reshape(_WIDTH, count).T if is_transposed else values.reshape(count, _WIDTH)
        assert (values[:, 0] == keys).all() and (values[:, 1] == -keys).all()
        return [int(token) for token in keys]
