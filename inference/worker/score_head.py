"""Can a model that should rerank do so? llama.cpp loads one without a head and gives nonsense."""

import os
from pathlib import Path

from inference.gguf.header import read_header
from inference.gguf.verdict import GgufRejected
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import FAKE_PREFIX, ModelKind, ReplicaSpec

_HEAD_PREFIX = "cls."


def check_score_head(spec: ReplicaSpec) -> None:
    """Raise EngineError for a reranking model whose files hold no classification head."""
    if spec.kind is not ModelKind.RERANK or spec.files[0].startswith(FAKE_PREFIX):
        return
    try:
        has_head = any(_holds_head(Path(name)) for name in spec.files)
    except (OSError, GgufRejected) as error:
        raise EngineError(
            ErrorCode.ENGINE_FAILED, f"The model's header cannot be read: {error}"
        ) from error
    if not has_head:
        raise EngineError(
            ErrorCode.ENGINE_FAILED,
            "The model has no head that gives scores (no tensor cls.*): it cannot rerank.",
        )


def _holds_head(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        header = read_header(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
    return any(tensor.name.startswith(_HEAD_PREFIX) for tensor in header.tensors)
