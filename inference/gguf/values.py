"""What a header holds: typed values and tensor descriptions, as read and not yet judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any


class ValueType(IntEnum):
    """The type numbers of metadata values."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


INTEGER_TYPES = frozenset(ValueType) - {
    ValueType.FLOAT32,
    ValueType.FLOAT64,
    ValueType.BOOL,
    ValueType.STRING,
    ValueType.ARRAY,
}
FLOAT_TYPES = frozenset({ValueType.FLOAT32, ValueType.FLOAT64})


@dataclass(frozen=True, slots=True)
class Value:
    """One metadata value. Arrays carry ``element_type`` and ``count``.

    ``data`` is an int, float, bool, bytes (strings are not decoded) or a sequence of these; it is
    None for arrays of strings that nobody asks for.
    """

    type: ValueType
    data: Any
    offset: int
    element_type: ValueType | None = None
    count: int = 0

    @property
    def text(self) -> str | None:
        """A string value as text, None for anything else or for bytes that are no UTF-8."""
        if self.type != ValueType.STRING:
            return None
        try:
            return bytes(self.data).decode()
        except UnicodeDecodeError:
            return None

    @property
    def integer(self) -> int | None:
        """An integer value, None for anything else."""
        return int(self.data) if self.type in INTEGER_TYPES else None


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What the header says of one tensor. ``offset`` counts from the data section."""

    name: str
    dims: tuple[int, ...]
    type_id: int
    offset: int
    byte_offset: int

    @property
    def num_elements(self) -> int:
        """The product of the dimensions, exact."""
        product = 1
        for dim in self.dims:
            product *= dim
        return product


@dataclass(frozen=True, slots=True)
class Header:
    """A whole header. ``data_start`` is where tensor data begin, alignment included."""

    version: int
    size_bytes: int
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    alignment: int
    data_start: int
    warnings: list[str] = field(default_factory=list)

    def text(self, key: str) -> str | None:
        """Give a string of the metadata, None if it is absent or no text."""
        value = self.metadata.get(key)
        return value.text if value else None

    def integer(self, key: str) -> int | None:
        """Give an integer of the metadata, None if it is absent or no integer."""
        value = self.metadata.get(key)
        return value.integer if value else None

    @property
    def architecture(self) -> str:
        """The architecture's name, empty if there is none."""
        return self.text("general.architecture") or ""

    @property
    def split(self) -> tuple[int, int]:
        """Which shard this is (from 0) and of how many; a whole model is (0, 1)."""
        return self.integer("split.no") or 0, self.integer("split.count") or 1
