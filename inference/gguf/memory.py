"""How much memory a model needs: weights, and KV cells per slot."""

from collections.abc import Sequence
from dataclasses import dataclass

# Bytes of one KV element, as numerator and denominator.
_CELL_BYTES = {"f16": (2, 1), "q8_0": (34, 32), "q4_0": (18, 32)}


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes that a replica will hold when all its slots are full."""

    weights_bytes: int
    kv_bytes_per_slot: int
    num_slots: int

    @property
    def total_bytes(self) -> int:
        """Weights and the KV cells of every slot."""
        return self.weights_bytes + self.kv_bytes_per_slot * self.num_slots


def kv_elements_per_token(
    kv_heads: Sequence[int], key_length: int, value_length: int
) -> tuple[int, int]:
    """Give the K and the V elements that one token takes, over all layers."""
    return sum(kv_heads) * key_length, sum(kv_heads) * value_length


def estimate_memory(
    *,
    weights_bytes: int,
    k_elements: int,
    v_elements: int,
    context_length: int,
    num_slots: int,
    cache_type_k: str = "f16",
    cache_type_v: str = "f16",
) -> MemoryEstimate:
    """Estimate a replica's memory; sliding windows are ignored, so it is an upper bound."""
    per_token = 0
    for elements, cache_type in ((k_elements, cache_type_k), (v_elements, cache_type_v)):
        numerator, denominator = _CELL_BYTES[cache_type]
        per_token += -(-elements * numerator // denominator)
    return MemoryEstimate(weights_bytes, per_token * context_length, num_slots)
