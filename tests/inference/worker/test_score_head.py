"""A model that should rerank is refused when it has no head for that."""

from pathlib import Path

import pytest

from inference.protocol.errors import EngineError
from inference.protocol.replicas import ModelKind, ReplicaSpec
from inference.worker.score_head import check_score_head
from tests.tiny_bert import write_tiny_bert


def make_spec(path: Path | str, kind: ModelKind = ModelKind.RERANK) -> ReplicaSpec:
    return ReplicaSpec(
        replica="r", deployment="d", model="m", kind=kind, files=(str(path),), sha256=("",)
    )


def test_a_head_is_found(tmp_path: Path) -> None:
    path = tmp_path / "bert.gguf"
    write_tiny_bert(path)
    check_score_head(make_spec(path))


def test_a_model_without_head_is_refused_for_reranking_only(tmp_path: Path) -> None:
    path = tmp_path / "bert.gguf"
    write_tiny_bert(path, is_reranker=False)
    with pytest.raises(EngineError, match="no head"):
        check_score_head(make_spec(path))
    check_score_head(make_spec(path, ModelKind.EMBEDDING))
    check_score_head(make_spec("fake:"))


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bert.gguf"
    path.write_bytes(b"nothing")
    with pytest.raises(EngineError, match="header"):
        check_score_head(make_spec(path))
