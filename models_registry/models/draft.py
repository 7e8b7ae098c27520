"""Can one model guess for another? Only if both read and write the same tokens."""

from inference.gguf.architectures import ENCODERS
from inference.protocol.sizes import MAX_VOCAB_PADDING
from models_registry.models.version import ModelVersion, VersionState


def judge_draft(draft: ModelVersion | None, target: ModelVersion | None) -> str:
    """Say why the draft cannot guess for the target; empty if it can, or if nothing is known."""
    if draft is None:
        return "Choose a draft model, or another way of speculation."
    if draft.state != VersionState.READY:
        return f"{draft} is {draft.get_state_display().lower()}, not ready."
    if target is None:
        return ""
    if draft.pk == target.pk:
        return "A model cannot guess for itself."
    if draft.facts.get("architecture") in ENCODERS:
        return f"{draft} cannot generate text."
    return _compare_vocabularies(draft, target)


def _compare_vocabularies(draft: ModelVersion, target: ModelVersion) -> str:
    """Compare what the headers say; token by token the engine does, before it serves."""
    ours, theirs = draft.facts, target.facts
    kinds = {ours.get("tokenizer"), theirs.get("tokenizer")} - {None, ""}
    if len(kinds) > 1:
        return (
            f"Its tokenizer is “{ours['tokenizer']}”, the model's “{theirs['tokenizer']}”: they "
            "must be the same."
        )
    sizes = ours.get("num_vocab"), theirs.get("num_vocab")
    if not all(sizes):
        return ""
    if abs(sizes[0] - sizes[1]) > MAX_VOCAB_PADDING:
        return f"Its vocabulary has {sizes[0]} tokens, the model's {sizes[1]}."
    hashes = {ours.get("vocab_hash"), theirs.get("vocab_hash")} - {None, ""}
    if sizes[0] == sizes[1] and len(hashes) > 1:
        return "It has as many tokens as the model, but others."
    return ""
