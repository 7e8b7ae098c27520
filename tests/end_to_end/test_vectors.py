"""Vectors and scores through a whole Llamero: a chat model that embeds too, and a reranker."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import live, tiny_bert
from tests.compat.conftest import RawClient
from tests.processes import find_free_port

pytestmark = pytest.mark.model

BOTH, RANKER = "tiny-both", "tiny-ranker"
QUERY = "what fell?"
DOCUMENTS = ["a cat sat.", "the market fell 3 points", "z " * 40]


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tiny_bert.Tensors]:
    """A reranking model and its tensors."""
    path = tmp_path_factory.mktemp("ranker") / "ranker.gguf"
    return path, tiny_bert.write_tiny_bert(path)


@pytest.fixture(scope="module")
def raw(
    tiny_model_path: Path,
    ranker: tuple[Path, tiny_bert.Tensors],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RawClient]:
    """A client of a Llamero that serves both."""
    home = tmp_path_factory.mktemp("vectors")
    both = {"context_length": 512, "num_slots": 4, "serves_embeddings": True}
    live.prepare(home, (tiny_model_path, BOTH, both), (ranker[0], RANKER, {"num_slots": 2}))
    running = live.start(home, find_free_port())
    try:
        live.wait_until_ready(running)
        yield RawClient(running.port, running.api_key)
    finally:
        live.stop(running)


def embed(raw: RawClient, texts: Any, **fields: Any) -> list[list[float]]:
    answer = raw.post("/v1/embeddings", model=BOTH, input=texts, **fields)
    assert answer.status == 200, answer.body
    return [one["embedding"] for one in answer.json()["data"]]


def test_a_chat_model_embeds_while_it_chats(raw: RawClient) -> None:
    alone = np.array(embed(raw, ["one text", "another one"]))
    assert np.linalg.norm(alone, axis=1) == pytest.approx(1.0, abs=1e-4)
    answers: list[Any] = []

    def chat() -> None:
        answers.append(
            raw.post(f"/m/{BOTH}/completion", prompt="abc", n_predict=300, ignore_eos=True)
        )

    threads = [threading.Thread(target=chat) for _ in range(3)]
    for thread in threads:
        thread.start()
    beside = [np.array(embed(raw, ["one text", "another one"])) for _ in range(5)]
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 3
    assert all(answer.json()["tokens_predicted"] == 300 for answer in answers)
    for vectors in beside:
        assert vectors == pytest.approx(alone, abs=0.01)


def test_two_thousand_inputs_come_back_in_order(raw: RawClient) -> None:
    texts = [f"text {index}" for index in range(2048)]
    vectors = embed(raw, texts)
    assert len(vectors) == 2048
    for index in (0, 1000, 2047):
        assert vectors[index] == pytest.approx(embed(raw, texts[index])[0], abs=0.02)


def test_scores_are_those_of_the_formula(
    raw: RawClient, ranker: tuple[Path, tiny_bert.Tensors]
) -> None:
    answer = raw.post("/v1/rerank", model=RANKER, query=QUERY, documents=DOCUMENTS)
    assert answer.status == 200, answer.body
    results = answer.json()["results"]
    scores = [one["relevance_score"] for one in results]
    assert scores == sorted(scores, reverse=True)
    tokens = raw.post(f"/m/{RANKER}/tokenize", content=QUERY + "[SEP]" + DOCUMENTS[1])
    ids = tokens.json()["tokens"]
    pair = (tiny_bert.CLS, *ids, tiny_bert.SEP)
    expected = tiny_bert.compute_score(ranker[1], pair)
    assert next(o for o in results if o["index"] == 1)["relevance_score"] == pytest.approx(
        expected, abs=0.01
    )


def test_what_a_model_cannot_do_is_refused_and_it_lives_on(raw: RawClient) -> None:
    for path, body in (
        ("/v1/embeddings", {"model": RANKER, "input": "a"}),
        ("/v1/chat/completions", {"model": RANKER, "messages": [{"role": "user", "content": "a"}]}),
        ("/v1/rerank", {"model": BOTH, "query": "a", "documents": ["b"]}),
        ("/v1/rerank", {"model": RANKER, "query": "a", "documents": ["b " * 200]}),
        ("/v1/embeddings", {"model": BOTH, "input": "x" * 600}),
        ("/v1/embeddings", {"model": BOTH, "input": ["a"], "dimensions": 8}),
    ):
        answer = raw.post(path, **body)
        assert answer.status == 400, (path, answer.body)
    cut = raw.post("/v1/rerank", model=RANKER, query="a", documents=["b " * 200], truncate=True)
    assert cut.status == 200
    assert cut.json()["usage"]["prompt_tokens"] == tiny_bert.CONTEXT_LENGTH
    assert len(embed(raw, "x" * 600, truncate=True)) == 1
