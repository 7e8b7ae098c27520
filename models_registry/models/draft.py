"""Can one model guess for another? Only if both read and write the same tokens."""

from inference.gguf.architectures import ENCODERS
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
    ours, theirs = draft.facts, target.facts
    for fact, words in (
        ("tokenizer", "tokenizer is “{}”, the model's “{}”"),
        ("num_vocab", "vocabulary has {} tokens, the model's {}"),
    ):
        if ours.get(fact) and theirs.get(fact) and ours[fact] != theirs[fact]:
            return f"The draft's {words.format(ours[fact], theirs[fact])}: they must be the same."
    hashes = {ours.get("vocab_hash"), theirs.get("vocab_hash")} - {None, ""}
    return "The draft has as many tokens as the model, but others." if len(hashes) > 1 else ""
