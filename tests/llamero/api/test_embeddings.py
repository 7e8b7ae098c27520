"""POST /v1/embeddings and /embedding."""

from base64 import b64decode, b64encode
from struct import pack, unpack
from typing import Any

import msgspec
import pytest

from inference.protocol.events import Done, FinishReason, Started, Vectors
from inference.protocol.replicas import ModelKind, RuntimeProfile
from llamero.api import embedding_request
from models_registry.selectors import ServedModel
from tests.llamero.api import fakes
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import CONTEXT, FACTS, NUM_VOCAB, FakeDispatcher, make_served

URL = "/v1/embeddings"
SHORTENED = RuntimeProfile(context_length=CONTEXT, min_dimensions=2)


def vector(first: float) -> str:
    return b64encode(pack("<4f", first, 0.0, 0.5, -1.0)).decode()


@pytest.fixture(autouse=True)
def embedding_script(dispatcher: FakeDispatcher) -> None:
    """Each input becomes a vector that starts with its place; the last ones come first."""

    def script(job: Any) -> Any:
        vectors = [vector(i) for i in range(len(job.inputs))]
        half = len(vectors) // 2
        return [
            Started(0, 0),
            Vectors(half, 4, tuple(vectors[half:])),
            *([Vectors(0, 4, tuple(vectors[:half]))] if half else []),
            Done(FinishReason.EOS, 9, 0, 0),
        ]

    dispatcher.script = script


async def test_texts_become_vectors_in_order() -> None:
    document = (await post(URL, {"model": "mini", "input": ["a", "bc", "d"]})).json()
    assert document["object"] == "list"
    assert document["model"] == "mini"
    assert [(one["index"], one["embedding"][0]) for one in document["data"]] == [
        (0, 0.0),
        (1, 1.0),
        (2, 2.0),
    ]
    assert document["data"][0]["object"] == "embedding"
    assert document["usage"] == {"prompt_tokens": 7, "total_tokens": 7}


async def test_base64_holds_the_same_numbers() -> None:
    body = {"model": "mini", "input": "a", "encoding_format": "base64"}
    encoded = (await post(URL, body)).json()["data"][0]["embedding"]
    assert unpack("<4f", b64decode(encoded)) == (0.0, 0.0, 0.5, -1.0)


async def test_markers_in_texts_are_plain_text(dispatcher: FakeDispatcher) -> None:
    await post(URL, {"model": "mini", "input": "[SEP]"})
    assert dispatcher.questions[0].parse_special is False


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": ["a", ""]}, "input"),
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": [NUM_VOCAB]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": "x" * CONTEXT}, "input"),
        ({"input": ["ok", "x" * CONTEXT]}, "input"),
        ({"encoding_format": "md5"}, "encoding_format"),
        ({"dimensions": 0}, "dimensions"),
        ({"dimensions": 2}, "dimensions"),
        ({"dimensions": 5}, "dimensions"),
        ({"model": "smol"}, "model"),
        ({"truncate": "END"}, "truncate"),
        ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": -2}, "truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": 1}, "truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": CONTEXT + 1}, "truncate_prompt_tokens"),
        ({"truncate": True, "truncation_direction": "Up"}, "truncation_direction"),
    ],
)
async def test_a_wrong_value_names_its_field(fields: dict[str, Any], param: str) -> None:
    answer = await post(URL, {"model": "mini", "input": "a"} | fields)
    assert (answer.status, answer.error["param"]) == (400, param)


async def test_the_native_shape_is_nested() -> None:
    document = (await post("/embedding", {"content": ["a", "b"]})).json()
    assert document[1] == {"index": 1, "embedding": [[1.0, 0.0, 0.5, -1.0]]}


async def test_full_dimensions_may_be_asked_for() -> None:
    answer = await post(URL, {"model": "mini", "input": "a", "dimensions": 4})
    assert answer.status == 200


@pytest.mark.parametrize(("dimensions", "status"), [(1, 400), (2, 200), (3, 200), (4, 200)])
async def test_vectors_may_be_shortened_as_far_as_the_deployment_says(
    dispatcher: FakeDispatcher, served: list[ServedModel], dimensions: int, status: int
) -> None:
    served.append(make_served("short", ModelKind.EMBEDDING, 9, profile=SHORTENED))
    answer = await post(URL, {"model": "short", "input": "a", "dimensions": dimensions})
    assert answer.status == status
    if status == 200:
        assert dispatcher.jobs[0].num_dimensions == dimensions
    else:
        assert "2 to 4" in answer.error["message"]


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"truncate": True}, "s" + "a" * (CONTEXT - 1)),
        ({"truncate_prompt_tokens": -1}, "s" + "a" * (CONTEXT - 1)),
        ({"truncate_prompt_tokens": 3}, "saa"),
        ({"truncate_prompt_tokens": 3, "truncation_direction": "Left"}, "sbb"),
        ({"truncate_prompt_tokens": 3, "truncate": False}, "saa"),
    ],
)
async def test_a_long_input_is_cut_where_that_is_asked_for(
    dispatcher: FakeDispatcher, fields: dict[str, Any], kept: str
) -> None:
    text = "a" * CONTEXT + "b" * CONTEXT
    document = (await post(URL, {"model": "mini", "input": text, **fields})).json()
    (tokens,) = dispatcher.jobs[0].inputs
    assert "s" + "".join(map(chr, tokens[1:])) == kept
    assert tokens[0] == 1
    assert document["usage"]["prompt_tokens"] == len(kept)


async def test_token_ids_are_cut_without_added_tokens(dispatcher: FakeDispatcher) -> None:
    await post(URL, {"model": "mini", "input": [7, 8, 9], "truncate_prompt_tokens": 2})
    assert dispatcher.jobs[0].inputs == ((7, 8),)


async def test_a_refusal_tells_which_input_is_too_long_and_by_how_much() -> None:
    error = (await post(URL, {"model": "mini", "input": ["ok", "x" * CONTEXT]})).error
    assert error["code"] == "context_length_exceeded"
    assert "input[1] has 257 tokens" in error["message"]
    assert (error["n_prompt_tokens"], error["n_ctx"]) == (CONTEXT + 1, CONTEXT)


@pytest.mark.parametrize("norm", [-1, 0, 1, 2, 3])
async def test_llama_servers_norms_reach_the_engine(dispatcher: FakeDispatcher, norm: int) -> None:
    assert (await post("/embedding", {"content": "a", "embd_normalize": norm})).status == 200
    assert dispatcher.jobs[0].norm == norm


@pytest.mark.parametrize("norm", [-2, 1025, 1.5, "2"])
async def test_other_norms_are_refused(norm: Any) -> None:
    answer = await post("/embedding", {"content": "a", "embd_normalize": norm})
    assert (answer.status, answer.error["param"]) == (400, "embd_normalize")


async def test_openais_route_always_gives_unit_vectors(dispatcher: FakeDispatcher) -> None:
    await post(URL, {"model": "mini", "input": "a", "embd_normalize": -1})
    assert dispatcher.jobs[0].norm == 2


async def test_without_pooling_only_the_native_route_answers_with_a_row_per_token(
    dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fakes, "FACTS", msgspec.structs.replace(FACTS, pooling="none"))
    rows = b64encode(pack("<8f", *range(8))).decode()
    dispatcher.script = lambda job: [
        Vectors(0, 4, (rows,)),
        Vectors(0, 4, (vector(9.0),)),
        Done(FinishReason.EOS, 3, 0, 0),
    ]
    refused = await post(URL, {"model": "mini", "input": "ab"})
    assert (refused.status, refused.error["param"]) == (400, "model")
    document = (await post("/embedding", {"content": "ab"})).json()
    assert document == [
        {"index": 0, "embedding": [[0, 1, 2, 3], [4, 5, 6, 7], [9.0, 0.0, 0.5, -1.0]]}
    ]
    monkeypatch.setattr(embedding_request, "MAX_NUMBERS", 4 * 5)
    answer = await post("/embedding", {"content": "abcdef"})
    assert (answer.status, answer.error["param"]) == (400, "content")


async def test_a_chat_model_embeds_where_its_deployment_says_so(
    dispatcher: FakeDispatcher, served: list[ServedModel]
) -> None:
    profile = RuntimeProfile(context_length=CONTEXT, serves_embeddings=True)
    served.append(make_served("both", pk=9, profile=profile))
    assert (await post(URL, {"model": "both", "input": "a"})).status == 200
    assert dispatcher.jobs[0].deployment == "both"
    # A model that only embeds answers where none is named.
    await post("/embedding", {"content": "a"})
    assert dispatcher.jobs[1].deployment == "mini"


async def test_a_wrong_kind_is_named() -> None:
    error = (await post(URL, {"model": "smol", "input": "a"})).error
    assert error["message"] == (
        "smol is a chat model; this address is for an embedding model. "
        "GET /v1/models tells the kind of each."
    )


async def test_a_worker_that_tells_too_little_is_an_error(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [Vectors(0, 4, (vector(1),)), Done(FinishReason.EOS, 9, 0, 0)]
    assert (await post(URL, {"model": "mini", "input": ["a", "b"]})).status == 500


@pytest.mark.parametrize("url", [URL, "/embedding"])
async def test_a_job_that_another_replica_begins_again_is_told_once(
    dispatcher: FakeDispatcher, url: str
) -> None:
    dispatcher.script = lambda job: [
        Started(0, 0),
        Vectors(0, 4, (vector(7.0), vector(8.0))),
        Started(0, 0),
        Vectors(0, 4, (vector(1.0),)),
        Vectors(1, 4, (vector(2.0), vector(3.0))),
        Done(FinishReason.EOS, 9, 0, 0),
    ]
    document = (await post(url, {"model": "mini", "input": ["a", "b", "c"]})).json()
    found = document["data"] if url == URL else document
    vectors = [one["embedding"] for one in found]
    first = vectors if url == URL else [rows[0] for rows in vectors]
    assert all(len(rows) == 1 for rows in vectors) or url == URL
    assert [row[0] for row in first] == [1.0, 2.0, 3.0]
