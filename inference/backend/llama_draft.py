"""Can the small model of a spec guess for the large one, and in which context?"""

import llama_cpp
import msgspec

from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel, load_model
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import ReplicaSpec
from inference.protocol.sizes import MAX_VOCAB_PADDING


def open_draft_backend(spec: ReplicaSpec, target: LlamaModel) -> LlamaBackend:
    """Load the small model of a spec with a context of the same slots; raises EngineError."""
    if not spec.draft_files:
        raise _refuse("the deployment names none")
    # Its cells belong to it alone, and nothing it computes is told to anybody.
    profile = msgspec.structs.replace(spec.profile, kv_cells=0, is_deterministic=False)
    draft_spec = msgspec.structs.replace(
        spec, files=spec.draft_files, sha256=spec.draft_sha256, loras=(), profile=profile
    )
    model = load_model(draft_spec, lambda _: None)
    problem = find_difference(model, target)
    if problem:
        model.close()
        raise _refuse(problem)
    return LlamaBackend(model, profile)


def find_difference(draft: LlamaModel, target: LlamaModel) -> str:
    """Say how the draft's vocabulary differs from the target's; empty where it is the same."""
    ours, theirs = draft.facts(), target.facts()
    if ours.vocab_type != theirs.vocab_type:
        return "its tokenizer is of another type than the model's"
    if abs(draft.num_vocab - target.num_vocab) > MAX_VOCAB_PADDING:
        return f"it has {draft.num_vocab} tokens, the model {target.num_vocab}"
    for token in range(min(draft.num_vocab, target.num_vocab)):
        mine = llama_cpp.llama_vocab_get_text(draft.vocab, token)
        if mine != llama_cpp.llama_vocab_get_text(target.vocab, token):
            return f"its token {token} is not the model's"
    return ""


def _refuse(problem: str) -> EngineError:
    return EngineError(
        ErrorCode.ENGINE_FAILED, f"The draft model cannot guess for this model: {problem}."
    )
