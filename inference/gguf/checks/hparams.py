"""Are the hyper-parameters numbers that the loader can divide by and allocate with?"""

import math
from collections.abc import Sequence

from inference.gguf.architectures import RECURRENT
from inference.gguf.values import FLOAT_TYPES, INTEGER_TYPES, Header, Value, ValueType
from inference.gguf.verdict import GgufRejected

MAX_BLOCKS = 1024
MAX_WIDTH = 2**20
MAX_CONTEXT = 2**27
MAX_EXPERTS = 4096
MAX_HEADS = 65_536
# The loader reads these as unsigned 32-bit integers, whatever type the file gives.
_COUNT_TYPES = frozenset({ValueType.UINT32, ValueType.UINT64, ValueType.INT32})


def check_hparams(header: Header) -> None:
    """Check every number under the architecture's prefix that decides sizes and divisions."""
    prefix = header.architecture
    num_blocks = _require(header, f"{prefix}.block_count", 1, MAX_BLOCKS)
    _require(header, f"{prefix}.embedding_length", 1, MAX_WIDTH)
    _require(header, f"{prefix}.context_length", 1, MAX_CONTEXT)
    _check_heads(header, num_blocks)
    _check_experts(header)
    for key, value in header.metadata.items():
        if key.startswith(f"{prefix}."):
            _check_finite(key, value)


def per_layer(value: Value, num_blocks: int) -> Sequence[int]:
    """Spread a number over the layers; a list of one number per layer stays as it is."""
    if value.type == ValueType.ARRAY:
        return tuple(value.data)
    return (int(value.data),) * num_blocks


def _refuse(key: str, value: Value | None, why: str) -> GgufRejected:
    return GgufRejected("hparam", f"{key} {why}.", value.offset if value else None)


def _require(header: Header, key: str, low: int, high: int) -> int:
    value = header.metadata.get(key)
    if value is None:
        raise _refuse(key, None, "is missing")
    if value.type not in _COUNT_TYPES or not low <= value.data <= high:
        raise _refuse(key, value, f"is not an integer from {low} to {high}")
    return int(value.data)


def _layer_counts(header: Header, key: str, num_blocks: int) -> Sequence[int] | None:
    """Read a head count per layer; 0 is legal for single layers only, or where nothing attends."""
    value = header.metadata.get(key)
    if value is None:
        return None
    is_array = value.type == ValueType.ARRAY
    if (value.element_type if is_array else value.type) not in _COUNT_TYPES:
        raise _refuse(key, value, "is not an integer, nor one per layer")
    counts = per_layer(value, num_blocks)
    low = 0 if is_array or header.architecture in RECURRENT else 1
    if len(counts) != num_blocks:
        raise _refuse(key, value, f"has {len(counts)} numbers for {num_blocks} layers")
    if any(not low <= count <= MAX_HEADS for count in counts):
        raise _refuse(key, value, f"is not from {low} to {MAX_HEADS}")
    return counts


def _check_heads(header: Header, num_blocks: int) -> None:
    prefix = header.architecture
    key = f"{prefix}.attention.head_count"
    heads = _layer_counts(header, key, num_blocks)
    if heads is None:
        if prefix not in RECURRENT:
            raise _refuse(key, None, "is missing")
        return
    kv_key = f"{prefix}.attention.head_count_kv"
    kv_heads = _layer_counts(header, kv_key, num_blocks)
    for query, kv in zip(heads, kv_heads or (), strict=False):
        if query > 0 and kv > 0 and query % kv:
            raise _refuse(kv_key, header.metadata[kv_key], f"({kv}) does not divide {query} heads")


def _check_experts(header: Header) -> None:
    prefix = header.architecture
    counts = {}
    for name in ("expert_count", "expert_used_count"):
        key = f"{prefix}.{name}"
        value = header.metadata.get(key)
        if value is None:
            continue
        counts[name] = value.integer if value.type in INTEGER_TYPES else None
        if counts[name] is None or not 0 <= value.data <= MAX_EXPERTS:
            raise _refuse(key, value, f"is not an integer from 0 to {MAX_EXPERTS}")
    if (counts.get("expert_used_count") or 0) > (counts.get("expert_count") or 0):
        key = f"{prefix}.expert_used_count"
        raise _refuse(key, header.metadata[key], "is more than there are experts")


def _check_finite(key: str, value: Value) -> None:
    if value.type in FLOAT_TYPES and not math.isfinite(value.data):
        raise _refuse(key, value, "is not a finite number")
