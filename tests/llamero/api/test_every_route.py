"""What is refused alike on every address that it concerns, in the address's own words."""

from typing import Any

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import ModelKind
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import post
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.fakes import CONTEXT, NUM_VOCAB, FakeDispatcher, make_served
from tests.llamero.api.test_strictness import BODIES, GENERATING, check_error

ANY_MODEL = ("/tokenize", "/detokenize")
KIND_OF = {
    "/v1/embeddings": "mini",
    "/embedding": "mini",
    "/v1/rerank": "ranker",
    "/rerank": "ranker",
}
LONG = "x" * (CONTEXT + 1)
OVERLONG: dict[str, tuple[dict[str, Any], str]] = {
    "/v1/chat/completions": ({"messages": [{"role": "user", "content": LONG}]}, "messages"),
    "/chat/completions": ({"messages": [{"role": "user", "content": LONG}]}, "messages"),
    "/v1/completions": ({"prompt": LONG}, "prompt"),
    "/v1/messages": ({"messages": [{"role": "user", "content": LONG}]}, "messages"),
    "/v1/responses": ({"input": LONG}, "input"),
    "/responses": ({"input": LONG}, "input"),
    "/completion": ({"prompt": LONG}, "prompt"),
    "/v1/embeddings": ({"input": LONG}, "input"),
    "/embedding": ({"content": LONG}, "content"),
    "/v1/rerank": ({"documents": [LONG]}, "documents"),
    "/rerank": ({"documents": [LONG]}, "documents"),
}
every_route = pytest.mark.parametrize("path", BODIES)


def body_of(path: str, **changes: Any) -> dict[str, Any]:
    """Give a good body for a path, also for one that is another's without ``/v1``."""
    body = BODIES.get(path) or BODIES[f"/v1{path}"]
    return {"model": KIND_OF.get(path, "smol"), **body, **changes}


@pytest.fixture(autouse=True)
def ranker(served: list[ServedModel]) -> None:
    """A reranking model beside the others."""
    served.append(make_served("ranker", ModelKind.RERANK, pk=7))


@every_route
async def test_a_model_that_is_none_is_404(dispatcher: FakeDispatcher, path: str) -> None:
    for name in ("no-such", "SMOL", "smol ", "smol\x00"):
        check_error(await post(path, body_of(path, model=name)), 404, "model")
    assert dispatcher.jobs == dispatcher.questions == []


@every_route
async def test_a_model_of_another_kind_is_refused(dispatcher: FakeDispatcher, path: str) -> None:
    if path in ANY_MODEL:
        return
    for name in {"smol", "mini", "ranker"} - {KIND_OF.get(path, "smol")}:
        check_error(await post(path, body_of(path, model=name)), 400, "model")
    assert dispatcher.jobs == dispatcher.questions == []


@every_route
async def test_a_model_of_others_is_as_good_as_none(dispatcher: FakeDispatcher, path: str) -> None:
    if KIND_OF.get(path) == "mini":
        return
    check_error(await post(path, body_of(path), key=LIMITED_KEY), 404, "model")
    assert dispatcher.jobs == dispatcher.questions == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", OVERLONG)
async def test_a_prompt_that_is_too_long_is_told_its_length_before_any_event(
    dispatcher: FakeDispatcher, path: str, stream: bool
) -> None:
    changes, param = OVERLONG[path]
    answer = await post(path, body_of(path, **changes, stream=stream))
    check_error(answer, 400, param)
    error = answer.json()["error"]
    told = error.get("details", error)
    assert (told["n_ctx"], told["n_prompt_tokens"] > CONTEXT) == (CONTEXT, True)
    if not path.startswith("/v1"):
        assert (error["type"], error["code"]) == ("exceed_context_size_error", 400)
    assert dispatcher.jobs == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", -(2**63) - 1),
        ("seed", 2**64),
        ("seed", 1.5),
        ("seed", "7"),
        ("temperature", -1e7),
        ("temperature", 1e7),
        ("temperature", "1"),
        ("top_p", -1),
        ("top_p", 1.5),
        ("min_p", 2),
        ("top_k", 2**40),
        ("presence_penalty", 3),
        ("frequency_penalty", -3),
        ("repeat_penalty", 0),
        ("logit_bias", {str(NUM_VOCAB): 1}),
        ("logit_bias", [[1]]),
        ("grammar", 'root ::= root "a"'),
        ("json_schema", {"type": "array", "maxItems": 100_000}),
        ("json_schema", {"type": "string", "maxLength": 65_537}),
        ("samplers", ["none"]),
        ("lora", [{"id": 9, "scale": 1}]),
    ],
)
async def test_a_value_that_no_sampler_takes_is_named(
    dispatcher: FakeDispatcher, name: str, value: Any
) -> None:
    for path in GENERATING:
        param = "lora[0].id" if name == "lora" else name
        check_error(await post(path, body_of(path, **{name: value})), 400, param)
    assert dispatcher.jobs == []


@pytest.mark.parametrize("seed", [-1, 0, 2**64 - 1])
async def test_seeds_within_bounds_are_taken(seed: int) -> None:
    for path in GENERATING:
        assert (await post(path, body_of(path, seed=seed))).status == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_template_refuses_is_told_in_its_words(
    dispatcher: FakeDispatcher, stream: bool
) -> None:
    dispatcher.ask_error = EngineError(ErrorCode.CHAT_TEMPLATE_ERROR, "Roles must alternate.")
    for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/apply-template"):
        answer = await post(path, body_of(path, stream=stream))
        check_error(answer, 400)
        assert answer.json()["error"]["message"] == "Roles must alternate."
    assert dispatcher.jobs == []


@pytest.mark.parametrize(
    ("path", "field", "value", "place"),
    [
        ("/v1/completions", "prompt", [5, NUM_VOCAB], "prompt[1]"),
        ("/v1/completions", "prompt", [[1], [5, -1]], "prompt[1][1]"),
        ("/completion", "prompt", ["a", -1], "prompt[1]"),
        ("/completion", "prompt", ["a", 5, 6, NUM_VOCAB], "prompt[3]"),
        ("/completion", "prompt", [[1], ["b", NUM_VOCAB]], "prompt[1][1]"),
        ("/tokenize", "content", ["a", NUM_VOCAB], "content[1]"),
        ("/detokenize", "tokens", [5, NUM_VOCAB], "tokens[1]"),
        ("/v1/embeddings", "input", [[1], [5, NUM_VOCAB]], "input[1][1]"),
        ("/embedding", "content", [1, -5], "content[1]"),
    ],
)
async def test_a_token_that_is_none_is_told_by_its_place(
    path: str, field: str, value: Any, place: str
) -> None:
    answer = await post(path, body_of(path, **{field: value}))
    check_error(answer, 400, field)
    assert answer.error["message"].startswith((f"{place}:", f"{place} "))
