"""POST /v1/embeddings and /embedding."""

from base64 import b64decode, b64encode
from struct import pack, unpack
from typing import Any

import pytest

from inference.protocol.events import Done, FinishReason, Started, Vectors
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import CONTEXT, NUM_VOCAB, FakeDispatcher

URL = "/v1/embeddings"


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
