"""Write GGUF headers byte by byte, wrong ones too: nothing is computed that is not asked for."""

import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = (
    range(13)
)
_CODES = {UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", UINT32: "I", INT32: "i"}
_CODES |= {FLOAT32: "f", UINT64: "Q", INT64: "q", FLOAT64: "d", BOOL: "?"}
I8 = 24
WIDTH = 4
TOKENS = (b"<unk>", b"<s>", b"</s>", b"a")


def pack_string(text: bytes, length: int | None = None) -> bytes:
    """Write a string; ``length`` lies about it."""
    return struct.pack("<Q", len(text) if length is None else length) + text


def pack_value(kind: int, value: Any) -> bytes:
    """Write a value without its type."""
    if kind == STRING:
        return pack_string(value.encode() if isinstance(value, str) else value)
    return struct.pack("<" + _CODES[kind], value)


def scalar(kind: int, value: Any) -> bytes:
    """Write a typed value."""
    return struct.pack("<I", kind) + pack_value(kind, value)


def array(kind: int, values: Any, count: int | None = None) -> bytes:
    """Write an array; ``count`` lies about its length."""
    head = struct.pack("<IIQ", ARRAY, kind, len(values) if count is None else count)
    return head + b"".join(pack_value(kind, value) for value in values)


@dataclass(frozen=True)
class Tensor:
    """A tensor's description; ``num_bytes`` of zeros are written for it."""

    name: str = "token_embd.weight"
    dims: tuple[int, ...] = (WIDTH, len(TOKENS))
    kind: int = I8
    offset: int = 0
    num_bytes: int = 32
    num_dims: int | None = None

    def pack(self) -> bytes:
        """Write the description."""
        count = len(self.dims) if self.num_dims is None else self.num_dims
        dims = struct.pack(f"<{len(self.dims)}Q", *self.dims)
        place = struct.pack("<IQ", self.kind & 0xFFFFFFFF, self.offset)
        return pack_string(self.name.encode()) + struct.pack("<I", count) + dims + place


def good_keys() -> dict[str, bytes]:
    """The keys of a model that passes."""
    return {
        "general.architecture": scalar(STRING, "llama"),
        "llama.block_count": scalar(UINT32, 1),
        "llama.context_length": scalar(UINT32, 128),
        "llama.embedding_length": scalar(UINT32, WIDTH),
        "llama.attention.head_count": scalar(UINT32, 2),
        "llama.attention.head_count_kv": scalar(UINT32, 1),
        "tokenizer.ggml.model": scalar(STRING, "llama"),
        "tokenizer.ggml.tokens": array(STRING, TOKENS),
        "tokenizer.ggml.scores": array(FLOAT32, [0.0] * len(TOKENS)),
        "tokenizer.ggml.token_type": array(INT32, [2, 3, 3, 1]),
        "tokenizer.ggml.bos_token_id": scalar(UINT32, 1),
    }


@dataclass(frozen=True)
class Draft:
    """A file in the making; a field that is None is filled in truthfully."""

    keys: dict[str, bytes] = field(default_factory=good_keys)
    tensors: tuple[Tensor, ...] = (Tensor(), Tensor("blk.0.attn_norm.weight", (32,), I8, 32))
    magic: bytes = b"GGUF"
    version: int = 3
    num_keys: int | None = None
    num_tensors: int | None = None
    extra_keys: bytes = b""
    alignment: int = 32

    def with_keys(self, **keys: bytes | None) -> "Draft":
        """Change keys, written with _ for a dot as in general__alignment; None removes one."""
        changed = {name.replace("__", "."): value for name, value in keys.items()}
        kept = {name: value for name, value in (self.keys | changed).items() if value is not None}
        return replace(self, keys=kept)

    def pack(self) -> bytes:
        """Write the whole file."""
        num_keys = len(self.keys) if self.num_keys is None else self.num_keys
        num_tensors = len(self.tensors) if self.num_tensors is None else self.num_tensors
        head = self.magic + struct.pack("<IQQ", self.version, num_tensors, num_keys)
        keys = b"".join(pack_string(name.encode()) + value for name, value in self.keys.items())
        body = head + keys + self.extra_keys + b"".join(one.pack() for one in self.tensors)
        body += bytes(-len(body) % self.alignment)
        return body + bytes(sum(one.num_bytes for one in self.tensors))

    def write(self, folder: Path, name: str = "model.gguf") -> Path:
        """Write the file into a folder."""
        path = folder / name
        path.write_bytes(self.pack())
        return path
