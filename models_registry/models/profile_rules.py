"""Which settings of a profile contradict each other, and what would be right instead.

Values that failed a check of their own may be anything; what is no number is not compared.
"""

from typing import Any

from inference.protocol.replicas import ModelKind
from models_registry.models.profile import MAX_CELLS, ProfileColumns

Errors = dict[str, str]
# Values per block; a row of keys or values is cut into whole blocks.
_BLOCKED_TYPES = frozenset({"q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"})
_BLOCK_SIZE = 32


def find_contradictions(profile: ProfileColumns, kind: ModelKind) -> Errors:
    """Give the fields that cannot be as they are, each with the reason."""
    return (
        _check_context(profile)
        | _check_cells(profile)
        | _check_devices(profile)
        | _check_determinism(profile)
        | _check_kind(profile, kind)
        | _check_vectors(profile, kind)
    )


def find_misfits(profile: ProfileColumns, facts: dict[str, Any]) -> Errors:
    """Give the fields that cannot be as they are for a model of these facts."""
    errors: Errors = {}
    for field, length in (("cache_type_k", "key_length"), ("cache_type_v", "value_length")):
        width = facts.get(length) or 0
        if getattr(profile, field) in _BLOCKED_TYPES and width % _BLOCK_SIZE:
            errors[field] = (
                f"The model's heads have {width} values, which blocks of {_BLOCK_SIZE} do not "
                "divide. Choose f16, bf16 or f32."
            )
    if exceeds(profile.min_dimensions, facts.get("embedding_length")):
        errors["min_dimensions"] = f"The model's vectors have {facts['embedding_length']} numbers."
    return errors


def exceeds(value: object, limit: object) -> bool:
    """Tell whether a number is above a limit."""
    return isinstance(value, int) and isinstance(limit, int) and value > limit


def _check_context(profile: ProfileColumns) -> Errors:
    errors: Errors = {}
    if exceeds(profile.num_slots, profile.step_token_budget):
        errors["step_token_budget"] = (
            f"A step must have a token for each of the {profile.num_slots} slots at least."
        )
    most = MAX_CELLS // profile.num_slots if exceeds(profile.num_slots, 0) else MAX_CELLS
    if exceeds(profile.context_length, most):
        errors["context_length"] = (
            f"Too much for {profile.num_slots} slots: {most} tokens is the most for so many."
        )
    return errors


def _check_cells(profile: ProfileColumns) -> Errors:
    errors: Errors = {}
    if profile.kv_cells and not profile.is_kv_unified:
        errors["kv_cells"] = "Only a unified KV cache can be bounded: choose that, or 0 here."
    elif profile.kv_cells and exceeds(profile.context_length, profile.kv_cells):
        errors["kv_cells"] = (
            f"Must hold one context at least: {profile.context_length} cells, or 0 for a full "
            "context per slot."
        )
    if profile.flash_attention == "off" and profile.cache_type_v in _BLOCKED_TYPES:
        errors["cache_type_v"] = (
            "Quantized values need flash attention: choose f16, bf16 or f32, or do not turn flash "
            "attention off."
        )
    return errors


def _check_devices(profile: ProfileColumns) -> Errors:
    try:
        shares = profile.tensor_shares
    except ValueError as error:
        return {"tensor_split": str(error)}
    if shares and profile.split_mode == "none":
        return {"tensor_split": "Nothing is split: leave this empty, or choose another split mode."}
    if shares and not any(shares):
        return {"tensor_split": "One GPU at least must have a share above 0."}
    return {}


def _check_determinism(profile: ProfileColumns) -> Errors:
    if not profile.is_deterministic:
        return {}
    errors: Errors = {}
    if profile.is_kv_unified:
        errors["is_kv_unified"] = (
            "A deterministic deployment needs a cache part for each slot: in a unified cache the "
            "numbers of one request depend on the others."
        )
    if profile.speculation:
        errors["speculation"] = (
            "A deterministic deployment decodes one token at a time: guessing changes the shape "
            "of its steps, and with it the numbers."
        )
    return errors


def _check_kind(profile: ProfileColumns, kind: ModelKind) -> Errors:
    if kind.is_generative:
        return {}
    errors: Errors = {}
    if profile.speculation:
        errors["speculation"] = f"A model of kind {kind} generates nothing to guess at."
    if profile.serves_embeddings:
        errors["serves_embeddings"] = f"A model of kind {kind} does only that already."
    if profile.is_context_shifting:
        errors["is_context_shifting"] = f"A model of kind {kind} has no context that could shift."
    return errors


def _check_vectors(profile: ProfileColumns, kind: ModelKind) -> Errors:
    if kind is not ModelKind.RERANK:
        if profile.pooling == "rank":
            return {"pooling": "Rank gives scores, not vectors: only a reranking model can do it."}
        return {}
    errors: Errors = {}
    if profile.pooling not in ("", "rank"):
        errors["pooling"] = "A reranking model can only rank: leave this as the model says."
    if profile.min_dimensions:
        errors["min_dimensions"] = "A reranking model gives scores, no vectors: leave this 0."
    return errors
