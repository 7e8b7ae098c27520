"""How large is a context of llama.cpp: its cells, batches and rows, by what it is used for?"""

from dataclasses import dataclass, replace

from inference.gguf.shape import MemoryShape
from inference.protocol.replicas import RuntimeProfile
from inference.protocol.sizes import MAX_INPUTS, PHYSICAL_BATCH

# Contexts are cut into whole blocks of cells.
CELL_BLOCK = 256


@dataclass(frozen=True, slots=True)
class ContextUse:
    """One context. ``num_attended`` cells are seen by a token at most, ``num_cells`` kept in all.

    ``num_tokens`` are computed in one pass. ``num_rows`` of ``output_width`` numbers are read from
    a step as a rule, ``num_most_rows`` when log-probabilities or guesses are asked for;
    ``has_logits`` tells whether the graph computes a row of logits for each.
    """

    num_sequences: int
    num_attended: int
    num_cells: int
    num_tokens: int
    num_rows: int
    num_most_rows: int
    output_width: int
    has_logits: bool
    is_flash: bool


def generating(shape: MemoryShape, profile: RuntimeProfile, context_length: int) -> ContextUse:
    """Describe the context of a model that generates."""
    each = _whole(context_length, CELL_BLOCK)
    attended, kept = each, each * profile.num_slots
    if profile.is_kv_unified:
        attended = kept = _whole(profile.context_cells(context_length), CELL_BLOCK)
    num_tokens = min(profile.max_step_tokens, PHYSICAL_BATCH)
    return ContextUse(
        num_sequences=profile.num_slots,
        num_attended=attended,
        num_cells=kept,
        num_tokens=num_tokens,
        num_rows=profile.max_step_rows if profile.speculation else profile.num_slots,
        num_most_rows=profile.max_step_rows,
        output_width=shape.num_vocab,
        has_logits=True,
        is_flash=profile.may_fuse_attention,
    )


def grouping(shape: MemoryShape, profile: RuntimeProfile, context_length: int) -> ContextUse:
    """Describe the small context of sequences that attend to the same beginning together."""
    own = generating(shape, profile, context_length)
    cells = _whole(profile.group_cells(context_length), CELL_BLOCK)
    return replace(own, num_attended=cells, num_cells=cells, is_flash=False)


def encoding(shape: MemoryShape, profile: RuntimeProfile, context_length: int) -> ContextUse:
    """Describe the context of an encoder: no cells, every token of a batch gives a row."""
    num_tokens = _whole(max(context_length, profile.step_token_budget), MAX_INPUTS)
    return ContextUse(
        num_sequences=MAX_INPUTS,
        num_attended=num_tokens,
        num_cells=0,
        num_tokens=num_tokens,
        num_rows=num_tokens,
        num_most_rows=num_tokens,
        output_width=shape.num_vocab + shape.num_embd,
        has_logits=False,
        is_flash=profile.flash_attention != "off",
    )


def embedding(shape: MemoryShape, profile: RuntimeProfile, context_length: int) -> ContextUse:
    """Describe the context in which a model of generation computes vectors."""
    num_tokens = _whole(profile.step_token_budget, MAX_INPUTS)
    cells = _whole(_whole(context_length + profile.step_token_budget, MAX_INPUTS), CELL_BLOCK)
    return ContextUse(
        num_sequences=MAX_INPUTS,
        num_attended=cells,
        num_cells=cells,
        num_tokens=num_tokens,
        num_rows=num_tokens,
        num_most_rows=num_tokens,
        output_width=shape.num_vocab + shape.num_embd,
        has_logits=True,
        is_flash=profile.flash_attention != "off",
    )


def _whole(number: int, block: int) -> int:
    return -(-number // block) * block
