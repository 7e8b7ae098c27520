"""Scores of reranking models: what their makers' formula gives, and what llama-server gives."""

from pathlib import Path

import pytest

from inference.backend.base import Model
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import ModelKind
from inference.protocol.text import JoinPairs
from inference.text.pairs import PairJoiner
from tests import tiny_bert
from tests.inference.embedding.replicas import running
from tests.inference.engine.fakes import make_job
from tests.tiny_reranker import write_tiny_reranker

QUERY = "what fell?"
DOCUMENTS = ("a cat sat.", "the market fell 3 points", "", "z " * 30)
# What llama-server of llama.cpp b11549 answered for the same file, query and documents.
LLAMA_SERVER_SCORES = (0.02677, 0.00224, 0.00001, 0.59566)


@pytest.fixture
def causal_path(tmp_path: Path) -> Path:
    path = tmp_path / "causal.gguf"
    write_tiny_reranker(path)
    return path


def join(model: Model, *documents: str, max_tokens: int = 0) -> tuple[tuple[int, ...], ...]:
    question = JoinPairs(query=QUERY, documents=documents, max_tokens=max_tokens)
    return PairJoiner(model).join(question)


def test_an_encoder_scores_as_its_formula_says(tmp_path: Path) -> None:
    path = tmp_path / "bert.gguf"
    tensors = tiny_bert.write_tiny_bert(path)
    with running(path, ModelKind.RERANK) as replica:
        pairs = join(replica.model, *DOCUMENTS)
        scores = [rows.item() for rows in replica.embed(pairs, norm=-1)]
        facts = replica.model.facts()
    first = pairs[0]
    assert (first[0], first[-1], first.count(tiny_bert.SEP)) == (tiny_bert.CLS, tiny_bert.SEP, 2)
    assert (facts.pooling, facts.num_dimensions) == ("rank", 1)
    assert scores == pytest.approx(
        [tiny_bert.compute_score(tensors, pair) for pair in pairs], abs=0.01
    )


@pytest.mark.parametrize("budget", [256, 16])
def test_a_causal_model_scores_by_its_template_in_whatever_parts(
    causal_path: Path, budget: int
) -> None:
    with running(causal_path, ModelKind.RERANK, step_token_budget=budget) as replica:
        pairs = join(replica.model, *DOCUMENTS)
        text = b"<s>Does it answer what fell??\na cat sat.</s>"
        assert replica.model.detokenize(pairs[0]) == text
        found = replica.embed(pairs, norm=-1, num_dimensions=1)
    assert [rows.item() for rows in found] == pytest.approx(LLAMA_SERVER_SCORES, abs=0.004)


def test_markers_in_documents_end_no_pair(causal_path: Path) -> None:
    with running(causal_path, ModelKind.RERANK) as replica:
        end = replica.model.facts().eos_token_id
        pair = join(replica.model, "a </s><s> b")[0]
        assert pair.count(end) == 1 and pair[-1] == end


def test_a_pair_is_cut_to_what_fits(causal_path: Path) -> None:
    with running(causal_path, ModelKind.RERANK) as replica:
        whole = join(replica.model, "z " * 400)[0]
        with pytest.raises(EngineError, match="at most 512"):
            replica.embed([whole])
        pair = join(replica.model, "z " * 400, max_tokens=512)[0]
        assert 500 <= len(pair) <= 512 and pair[-1] == whole[-1]
        assert len(replica.embed([pair])) == 1


def test_a_reranking_model_generates_nothing(causal_path: Path) -> None:
    with (
        running(causal_path, ModelKind.RERANK) as replica,
        pytest.raises(EngineError, match="reranking") as caught,
    ):
        replica.runner.submit(make_job())
    assert caught.value.code is ErrorCode.WRONG_MODEL_KIND


def test_a_reranking_file_gives_no_vectors_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "bert.gguf"
    tiny_bert.write_tiny_bert(path)
    with (
        pytest.raises(EngineError, match="kind must be rerank"),
        running(path, ModelKind.EMBEDDING),
    ):
        pass
    with running(path, ModelKind.EMBEDDING, pooling="cls") as replica:
        assert replica.embed_texts(["abc"])[0].shape == (1, tiny_bert.NUM_EMBD)
