"""POST /v1/rerank, /v1/reranking, /rerank and /reranking, in Jina's shape and in TEI's."""

from base64 import b64encode
from math import exp
from struct import pack
from typing import Any

import pytest

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Failed, FinishReason, Started, Vectors
from inference.protocol.replicas import ModelKind
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import CONTEXT, FakeDispatcher, make_served

URL = "/v1/rerank"
SCORES = (-1.5, 2.0, 0.25, 2.0)
DOCUMENTS = ["a", "bb", "c", "d"]


@pytest.fixture(autouse=True)
def ranker(dispatcher: FakeDispatcher, served: list[ServedModel]) -> None:
    """A reranking model that gives its documents these scores."""
    served.append(make_served("ranker", ModelKind.RERANK, pk=7))

    def script(job: Any) -> Any:
        vectors = [b64encode(pack("<f", score)).decode() for score in SCORES[: len(job.inputs)]]
        return [Started(0, 0), Vectors(0, 1, tuple(vectors)), Done(FinishReason.EOS, 9, 0, 0)]

    dispatcher.script = script


async def rerank(**fields: Any) -> Any:
    body = {"model": "ranker", "query": "q", "documents": DOCUMENTS} | fields
    answer = await post(URL, {name: value for name, value in body.items() if value is not None})
    assert answer.status == 200, answer.json()
    return answer.json()


async def test_documents_come_best_first_with_their_scores() -> None:
    assert await rerank() == {
        "model": "ranker",
        "object": "list",
        "usage": {"prompt_tokens": 17, "total_tokens": 17},
        "results": [
            {"index": 1, "relevance_score": 2.0},
            {"index": 3, "relevance_score": 2.0},
            {"index": 2, "relevance_score": 0.25},
            {"index": 0, "relevance_score": -1.5},
        ],
    }


@pytest.mark.parametrize("path", ["/v1/rerank", "/v1/reranking", "/rerank", "/reranking"])
async def test_every_address_answers_and_needs_no_model(path: str) -> None:
    answer = await post(path, {"query": "q", "documents": DOCUMENTS})
    assert answer.json()["results"][0]["index"] == 1
    below = await post(f"/m/ranker{path}", {"query": "q", "documents": DOCUMENTS})
    assert below.json() == answer.json()


@pytest.mark.parametrize(("top_n", "count"), [(1, 1), (3, 3), (4, 4), (99, 4)])
async def test_top_n_keeps_the_best(top_n: int, count: int) -> None:
    results = (await rerank(top_n=top_n))["results"]
    assert [one["index"] for one in results] == [1, 3, 2, 0][:count]


async def test_documents_may_be_objects_and_come_back_where_asked_for() -> None:
    results = (await rerank(documents=["a", {"text": "bb"}], return_documents=True))["results"]
    assert [one["document"] for one in results] == [{"text": "bb"}, {"text": "a"}]


async def test_texts_are_answered_as_tei_does() -> None:
    bare = await rerank(documents=None, texts=DOCUMENTS[:2])
    assert bare == [{"index": 1, "score": 2.0}, {"index": 0, "score": -1.5}]
    full = await rerank(documents=None, texts=DOCUMENTS[:2], return_text=True, raw_scores=False)
    assert [one["text"] for one in full] == ["bb", "a"]
    assert full[0]["score"] == pytest.approx(1 / (1 + exp(-2)))
    assert full[1]["score"] == pytest.approx(1 / (1 + exp(1.5)))


async def test_the_engine_scores_pairs_as_they_are(dispatcher: FakeDispatcher) -> None:
    await rerank()
    job = dispatcher.jobs[0]
    assert (job.norm, job.num_dimensions, job.deployment) == (-1, 1, "ranker")
    assert len(job.inputs) == 4
    assert dispatcher.questions[0].query == "q"


async def test_long_documents_are_refused_or_cut(dispatcher: FakeDispatcher) -> None:
    long = ["a", "x" * CONTEXT]
    answer = await post(URL, {"model": "ranker", "query": "q", "documents": long})
    assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
    assert "documents[1]" in answer.error["message"]
    document = await rerank(documents=long, truncate=True)
    assert dispatcher.questions[1].max_tokens == CONTEXT
    assert document["usage"]["prompt_tokens"] == CONTEXT + 4
    await rerank(documents=long, truncate_prompt_tokens=9)
    assert max(map(len, dispatcher.jobs[1].inputs)) == 9


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"query": None}, "query"),
        ({"query": 3}, "query"),
        ({"query": ["q"]}, "query"),
        ({"documents": None}, "documents"),
        ({"documents": []}, "documents"),
        ({"documents": "a"}, "documents"),
        ({"documents": {"0": "a"}}, "documents"),
        ({"documents": ["a", 3]}, "documents"),
        ({"documents": ["a", None]}, "documents"),
        ({"documents": [{"body": "a"}]}, "documents"),
        ({"documents": ["a"] * 2049}, "documents"),
        ({"texts": ["a"]}, "documents"),
        ({"documents": None, "texts": [[1]]}, "texts"),
        ({"top_n": 0}, "top_n"),
        ({"top_n": -1}, "top_n"),
        ({"top_n": 1.5}, "top_n"),
        ({"return_documents": 1}, "return_documents"),
        ({"truncate": "yes"}, "truncate"),
        ({"truncate": True, "truncation_direction": "Left"}, "truncation_direction"),
        ({"truncate_prompt_tokens": CONTEXT + 1}, "truncate_prompt_tokens"),
        ({"model": "mini"}, "model"),
        ({"model": "smol"}, "model"),
    ],
)
async def test_a_wrong_value_names_its_field(fields: dict[str, Any], param: str) -> None:
    body = {"model": "ranker", "query": "q", "documents": DOCUMENTS} | fields
    answer = await post(URL, body)
    assert (answer.status, answer.error["param"]) == (400, param)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": "a"}),
        ("/embedding", {"content": "a"}),
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
    ],
)
async def test_a_reranking_model_does_nothing_else(path: str, body: dict[str, Any]) -> None:
    answer = await post(path, body | {"model": "ranker"})
    assert (answer.status, answer.error["param"]) == (400, "model")
    assert "ranker is a reranking model" in answer.error["message"]


async def test_errors_on_llama_servers_address_have_its_numbers() -> None:
    answer = await post("/rerank", {"query": "q", "documents": []})
    assert answer.error["code"] == 400
    assert (await post(URL, {"query": "q", "documents": []})).error["code"] == "invalid_value"


async def test_a_failed_job_is_an_error(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [Failed(ErrorCode.ENGINE_FAILED, "The model failed.")]
    answer = await post(URL, {"model": "ranker", "query": "q", "documents": DOCUMENTS})
    assert (answer.status, answer.error["code"]) == (500, "engine_failed")


async def test_without_a_reranking_model_nothing_is_found(served: list[ServedModel]) -> None:
    served[:] = [one for one in served if one.kind is not ModelKind.RERANK]
    answer = await post(URL, {"query": "q", "documents": DOCUMENTS})
    assert (answer.status, answer.error["code"]) == (404, "model_not_found")
