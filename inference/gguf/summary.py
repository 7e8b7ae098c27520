"""What a checked model is, in the few facts that people and defaults need."""

import hashlib
from typing import Any

import msgspec

from inference.gguf.architectures import ENCODERS
from inference.gguf.checks.hparams import per_layer
from inference.gguf.shape import MemoryShape, shape_of
from inference.gguf.tensor_types import FILE_TYPES, TENSOR_TYPES
from inference.gguf.values import Header
from inference.protocol.replicas import ModelKind

_POOLING = {0: "none", 1: "mean", 2: "cls", 3: "last", 4: "rank"}


class ModelSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a model, all of them from its header.

    ``kind`` is a guess from architecture, pooling and template. ``memory`` is what its memory is
    estimated from. ``vocab_hash`` is the same for models with the same tokens. ``file_order`` lists
    the given files by shard number.
    """

    architecture: str
    name: str = ""
    license: str = ""
    kind: ModelKind = ModelKind.CHAT
    quantization: str = ""
    num_params: int = 0
    size_bytes: int = 0
    num_files: int = 1
    num_tensors: int = 0
    context_length: int = 0
    embedding_length: int = 0
    num_layers: int = 0
    num_heads: int = 0
    num_kv_heads: int = 0
    num_vocab: int = 0
    tokenizer: str = ""
    pooling: str = ""
    has_chat_template: bool = False
    key_length: int = 0
    value_length: int = 0
    vocab_hash: str = ""
    memory: MemoryShape = MemoryShape()
    file_order: tuple[int, ...] = (0,)
    warnings: tuple[str, ...] = ()

    @property
    def can_generate(self) -> bool:
        """Whether the architecture can produce tokens at all."""
        return self.architecture not in ENCODERS


def summarize(headers: list[Header], num_vocab: int, file_order: tuple[int, ...]) -> ModelSummary:
    """Sum up the checked headers of one model, first shard first."""
    first = headers[0]
    name = first.architecture
    tensors = [tensor for header in headers for tensor in header.tensors]
    pooling = _POOLING.get(first.integer(f"{name}.pooling_type") or 0, "")
    if f"{name}.pooling_type" not in first.metadata:
        pooling = ""
    return ModelSummary(
        architecture=name,
        name=(first.text("general.name") or "")[:200],
        license=(first.text("general.license") or "")[:100],
        kind=_guess_kind(first, pooling, {tensor.name for tensor in tensors}),
        quantization=_quantization(headers),
        num_params=sum(tensor.num_elements for tensor in tensors),
        size_bytes=sum(header.size_bytes for header in headers),
        num_files=len(headers),
        num_tensors=len(tensors),
        num_vocab=num_vocab,
        tokenizer=first.text("tokenizer.ggml.model") or "",
        pooling=pooling,
        has_chat_template=bool(first.text("tokenizer.chat_template")),
        vocab_hash=_hash_vocabulary(first),
        memory=shape_of(headers, num_vocab),
        file_order=file_order,
        warnings=tuple(warning for header in headers for warning in header.warnings),
        **_shape(first),
    )


def _shape(header: Header) -> dict[str, Any]:
    name = header.architecture
    num_layers = header.integer(f"{name}.block_count") or 0
    width = header.integer(f"{name}.embedding_length") or 0
    value = header.metadata.get(f"{name}.attention.head_count")
    heads = per_layer(value, num_layers) if value else ()
    kv_value = header.metadata.get(f"{name}.attention.head_count_kv")
    kv_heads = per_layer(kv_value, num_layers) if kv_value else heads
    head_width = width // max(heads) if any(heads) else 0
    return {
        "context_length": header.integer(f"{name}.context_length") or 0,
        "embedding_length": width,
        "num_layers": num_layers,
        "num_heads": max(heads, default=0),
        "num_kv_heads": max(kv_heads, default=0),
        "key_length": header.integer(f"{name}.attention.key_length") or head_width,
        "value_length": header.integer(f"{name}.attention.value_length") or head_width,
    }


def _hash_vocabulary(header: Header) -> str:
    """Name the tokens, in order, by a hash; lengths keep neighbours apart."""
    digest = hashlib.sha256()
    for token in header.metadata["tokenizer.ggml.tokens"].data:
        digest.update(len(token).to_bytes(4, "little"))
        digest.update(token)
    return digest.hexdigest()[:32]


def _guess_kind(header: Header, pooling: str, tensors: set[str]) -> ModelKind:
    if pooling == "rank" or "cls.output.weight" in tensors:
        return ModelKind.RERANK
    if header.architecture in ENCODERS or pooling in ("mean", "cls", "last"):
        return ModelKind.EMBEDDING
    has_template = bool(header.text("tokenizer.chat_template"))
    return ModelKind.CHAT if has_template else ModelKind.COMPLETION


def _quantization(headers: list[Header]) -> str:
    """Name the quantization: as the file says, else the type that most elements have."""
    stated = headers[0].integer("general.file_type")
    if stated in FILE_TYPES:
        return FILE_TYPES[stated]
    elements: dict[str, int] = {}
    for header in headers:
        for tensor in header.tensors:
            kind = TENSOR_TYPES[tensor.type_id].name
            elements[kind] = elements.get(kind, 0) + tensor.num_elements
    return max(elements, key=lambda kind: elements[kind])
