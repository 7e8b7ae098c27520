"""How large is the buffer in which llama.cpp computes a batch?

Its allocator lays tensors of a graph over each other, so that the largest phase decides. The
formulas were fitted to the sizes that llama.cpp gives for real and made-up models of a dozen
architectures: within a tenth for most, an eighth for recurrent ones.
"""

from inference.gguf.context_use import ContextUse
from inference.gguf.shape import MemoryShape

_FLOAT = 4


def compute_bytes(shape: MemoryShape, use: ContextUse, num_rows: int) -> int:
    """Give the largest of the phases: attention, feed-forward or state, so many rows of logits."""
    masks = _mask_bytes(shape, use)
    num_logits = min(num_rows, use.num_tokens) if use.has_logits else 0
    return masks + max(
        _attention_bytes(shape, use),
        _FLOAT * use.num_tokens * _feed_forward_numbers(shape),
        _state_bytes(shape, use),
        _FLOAT * num_logits * (shape.num_vocab + 2 * shape.num_embd),
    )


def _mask_bytes(shape: MemoryShape, use: ContextUse) -> int:
    """A cell of the mask per pair of token and cell, in half precision for flash attention."""
    if not shape.num_heads:
        return 0
    return (2 if use.is_flash else 4) * use.num_attended * use.num_tokens * shape.num_masks


def _attention_bytes(shape: MemoryShape, use: ContextUse) -> int:
    scores = 0 if use.is_flash else use.num_attended * shape.num_heads
    rows = shape.num_embd + 4 * shape.attention_width + 2 * shape.kv_width
    return _FLOAT * use.num_tokens * (rows + scores)


def _feed_forward_numbers(shape: MemoryShape) -> int:
    """Numbers per token that live at once around the feed-forward part."""
    around = 3 * shape.num_embd + max(shape.num_embd, shape.attention_width)
    dense = (3 if shape.is_gated else 1) * shape.ffn_width + around
    routed = 2 * (shape.ffn_width + shape.num_experts_used * shape.num_embd)
    return max(dense, routed) if shape.num_experts_used else dense


def _state_bytes(shape: MemoryShape, use: ContextUse) -> int:
    """Recurrent layers: intermediates per token, and copies of the states per sequence."""
    largest = max((layer.state_elements for layer in shape.layers), default=0)
    per_token = 13 * shape.state_width // 2 * use.num_tokens
    return _FLOAT * (per_token + 6 * largest // 5 * use.num_sequences)
