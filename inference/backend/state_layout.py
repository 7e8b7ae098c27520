"""How does the saved state of a sequence become one that another context takes?

llama.cpp writes the streams of a context one after the other, and the values of each cell as a row;
without flash attention as columns, since it keeps them so. A context takes only what has as many
streams as itself, and its own order of values. What is not laid out as expected is refused: then
it stays where it is.
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HEAD = struct.Struct("<IiI")
_COUNT = struct.Struct("<I")
_VALUES = struct.Struct("<II")
_ROW = struct.Struct("<iQ")
_COLUMN = struct.Struct("<iII")
# What a cell says of itself: its position, and the one sequence that has it.
_CELL_BYTES = 12
# The bytes of a number of each plain type (ggml's f32, f16, bf16), and what stands for it here.
_ITEM_BYTES = {0: 4, 1: 2, 30: 2}
_NUMBERS: dict[int, np.dtype[Any]] = {2: np.dtype(np.uint16), 4: np.dtype(np.uint32)}


@dataclass(frozen=True, slots=True)
class StateLayout:
    """How a context writes states: so many streams, the values of its cells as columns or not."""

    num_streams: int
    is_transposed: bool


def read_state(state: memoryview) -> "SavedState | None":
    """Read the state of a sequence; None where it is not made of plain cells."""
    try:
        return SavedState(state.cast("B"))
    except (struct.error, ValueError, KeyError, OverflowError):
        return None


class SavedState:
    """A saved state, cut into its parts; raises ValueError where it does not end with them."""

    def __init__(self, state: memoryview) -> None:
        self._state = state
        self._head = _HEAD.unpack_from(state)
        num_left, at = self._head[2], _HEAD.size
        self._count = 0
        while num_left and not self._count:
            (self._count,) = _COUNT.unpack_from(state, at)
            num_left, at = num_left - 1, at + _COUNT.size
        self._cells = at, at + self._count * _CELL_BYTES
        self._is_transposed, self._num_layers = _VALUES.unpack_from(state, self._cells[1])
        start = self._cells[1] + _VALUES.size
        end = start
        for _ in range(self._num_layers):
            _, row_bytes = _ROW.unpack_from(state, end)
            end += _ROW.size + self._count * row_bytes
        self._keys = start, end
        self._tables, end = self._read_values(end)
        if not self._count or end + num_left * _COUNT.size != len(state):
            raise ValueError("not the plain cells of one sequence")

    @property
    def layout(self) -> StateLayout:
        """How it was written."""
        return StateLayout(self._head[2], bool(self._is_transposed))

    def write(self, layout: StateLayout) -> memoryview:
        """Give the state as a context of this layout writes it."""
        magic, seq_id, _ = self._head
        form = _COLUMN if layout.is_transposed else _ROW
        num_values = sum(form.size + table.nbytes for _, table in self._tables)
        front: list[bytes | memoryview] = [
            _HEAD.pack(magic, seq_id, layout.num_streams) + _COUNT.pack(self._count),
            self._state[slice(*self._cells)],
            _VALUES.pack(layout.is_transposed, self._num_layers),
            self._state[slice(*self._keys)],
        ]
        size = sum(map(len, front)) + num_values + _COUNT.size * (layout.num_streams - 1)
        # Filled in place: states are megabytes, and each further copy costs a part of a step.
        written = np.zeros(size, np.uint8)
        at = 0
        for part in front:
            written[at : at + len(part)] = np.frombuffer(part, np.uint8)
            at += len(part)
        for kind, table in self._tables:
            width = table.shape[1]
            if layout.is_transposed:
                form.pack_into(written.data, at, kind, table.itemsize, width)
            else:
                form.pack_into(written.data, at, kind, width * table.itemsize)
            at += form.size
            rows = table.T if layout.is_transposed else table
            target = np.frombuffer(written, table.dtype, table.size, at).reshape(rows.shape)
            target[:] = rows
            at += table.nbytes
        return written.data

    def _read_values(self, at: int) -> tuple[list[tuple[int, NDArray[Any]]], int]:
        """Give each layer's type and values, a row per cell, and where they end."""
        tables = []
        for _ in range(self._num_layers):
            if self._is_transposed:
                kind, item_bytes, width = _COLUMN.unpack_from(self._state, at)
                at, shape = at + _COLUMN.size, (width, self._count)
            else:
                kind, row_bytes = _ROW.unpack_from(self._state, at)
                item_bytes = _ITEM_BYTES[kind]
                at, shape = at + _ROW.size, (self._count, row_bytes // item_bytes)
            num_numbers = shape[0] * shape[1]
            table = np.frombuffer(self._state, _NUMBERS[item_bytes], num_numbers, at).reshape(shape)
            tables.append((kind, table.T if self._is_transposed else table))
            at += num_numbers * item_bytes
        return tables, at
