"""The description is valid, complete, and true of what the routes answer."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import get_resolver
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.validation import validate_schema

from inference.protocol.events import Candidate, TokenLogprob, Tokens, Vectors
from inference.protocol.replicas import ModelKind
from llamero.api import fields
from llamero.api.openapi.examples import CHAT_MODEL, EMBEDDING_MODEL
from llamero.api.openapi.operations import OPERATIONS
from llamero.api.openapi.request_values import VALUES
from llamero.api.openapi.views import write_document
from models_registry.demo.models import DEMO_MODELS
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import get, start
from tests.llamero.api.described import check, document, validate
from tests.llamero.api.fakes import FakeDispatcher, make_served, say

HI = [{"role": "user", "content": "Hi"}]
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
CHOICE = Candidate(101, "e", -0.5)
JUDGED = TokenLogprob(CHOICE, (CHOICE,))


async def test_the_document_is_public_and_valid() -> None:
    GENERATOR_STATS.reset()
    answer = await get("/openapi.json", key=None)
    assert not GENERATOR_STATS
    assert answer.json()["openapi"] == "3.1.0"
    # All of it would take seconds: `make fuzz` does. Here, one path of each kind.
    validate_schema(_cut(answer.json()))
    assert (await get("/v1/openapi.json", key=None)).body == answer.body


async def test_the_document_comes_packed_to_who_can_unpack_it() -> None:
    exchange = start("GET", "/openapi.json", key=None, headers={"accept-encoding": "gzip, br"})
    await exchange.task
    packed = exchange.answer
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == write_document()
    assert len(packed.body) < len(write_document()) / 5


def test_every_route_and_method_is_described() -> None:
    document = json.loads(write_document())
    described = {
        (method.upper(), path.strip("/"))
        for path, methods in document["paths"].items()
        for method in methods
    }
    routes = set(_routes())
    assert described == {(method, path) for method, path, _ in routes}
    assert {(view, method) for method, _, view in routes} == set(OPERATIONS)


def test_every_field_of_a_request_is_described() -> None:
    for view, _ in OPERATIONS:
        serializer = getattr(view, "serializer_class", None)
        for name, field in serializer().fields.items() if serializer else ():
            owners = [f"{kind.__name__}.{name}" for kind in serializer.__mro__]
            if isinstance(field, fields.AnyValue):
                assert {name, *owners} & set(VALUES), f"request_values.py lacks {owners[0]}"


def test_examples_keep_their_schemas() -> None:
    assert {one.slug for one in DEMO_MODELS} == {CHAT_MODEL, EMBEDDING_MODEL}
    seen = set()
    for path, body in _bodies():
        validate(body["example"], body["schema"])
        assert not (path.startswith("/m/") and "model" in body["example"])
        seen.add(path)
    assert len(seen) > 40


async def test_examples_are_answered(dispatcher: FakeDispatcher, served: list[ServedModel]) -> None:
    served += [
        make_served(CHAT_MODEL, pk=11),
        make_served(EMBEDDING_MODEL, ModelKind.EMBEDDING, pk=12),
        make_served("ranker", ModelKind.RERANK, pk=13),
    ]
    dispatcher.script = _speak
    for path, body in _bodies():
        # Below a model's name things are the same; a batch wants a file that was uploaded, an
        # import a hub.
        if path.startswith(("/m/", "/v1/model-imports")) or path == "/v1/batches":
            continue
        answer = await start("POST", path, body["example"]).finish()
        # The last: these models cannot fill gaps.
        is_refused = path in ("/props", "/slots/{slot}", "/lora-adapters", "/infill")
        assert answer.status in ((403, 501) if is_refused else (200,)), (path, answer.body)


def test_the_newest_words_for_a_thing_come_first() -> None:
    paths = list(json.loads(write_document())["paths"])
    kinds = [path.startswith("/m/") * 2 or not path.startswith("/v1/") for path in paths]
    assert kinds == sorted(kinds)


def test_operations_have_ids_of_their_own() -> None:
    document = json.loads(write_document())
    ids = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("POST", "/v1/chat/completions", {"messages": HI}),
        ("POST", "/v1/chat/completions", {"messages": HI, "logprobs": True, "top_logprobs": 1}),
        ("POST", "/v1/chat/completions", {"messages": HI, "n": 2, "prompt_logprobs": 1}),
        ("POST", "/v1/chat/completions", {"messages": HI, "verbose": True}),
        ("POST", "/v1/chat/completions", {"messages": HI, "timings_per_token": True} | STREAM),
        ("POST", "/v1/chat/completions", {"messages": HI, "logprobs": True} | STREAM),
        ("POST", "/v1/chat/completions", {"messages": HI, "return_progress": True} | STREAM),
        ("POST", "/chat/completions", {"messages": HI}),
        ("POST", "/v1/chat/completions/input_tokens", {"messages": HI}),
        ("POST", "/apply-template", {"messages": HI}),
        ("POST", "/v1/responses/input_tokens", {"input": "Hi"}),
        ("POST", "/v1/responses", {"input": "Hi", "store": False}),
        ("POST", "/v1/responses", {"input": "Hi", "store": False, "stream": True}),
        ("POST", "/v1/messages", {"messages": HI, "max_tokens": 5}),
        ("POST", "/v1/messages", {"messages": HI, "max_tokens": 5, "stream": True}),
        ("POST", "/v1/messages", {"messages": HI}),
        ("POST", "/v1/messages/count_tokens", {"messages": HI}),
        ("POST", "/v1/completions", {"prompt": ["a", "b"], "echo": True, "logprobs": 1}),
        ("POST", "/v1/completions", {"prompt": "a", "logprobs": 0} | STREAM),
        ("POST", "/m/smol/v1/completions", {"prompt": "a"}),
        ("POST", "/completion", {"prompt": "a", "n_probs": 1}),
        ("POST", "/completion", {"prompt": ["a", "b"], "response_fields": ["content"]}),
        ("POST", "/completion", {"prompt": "a", "stream": True, "timings_per_token": True}),
        ("POST", "/completion", {"prompt": "a", "n_probs": 1, "post_sampling_probs": True}),
        ("POST", "/tokenize", {"content": "a", "with_pieces": True}),
        ("POST", "/tokenize", {"content": "a"}),
        ("POST", "/detokenize", {"tokens": [97]}),
        ("POST", "/v1/embeddings", {"model": "mini", "input": "a"}),
        ("POST", "/v1/embeddings", {"model": "mini", "input": "a", "encoding_format": "base64"}),
        ("POST", "/embedding", {"model": "mini", "content": "a"}),
        ("POST", "/infill", {"input_prefix": "a", "input_suffix": "b"}),
        ("POST", "/rerank", {"query": "a", "documents": ["b"]}),
        ("GET", "/v1/models", None),
        ("GET", "/v1/models/smol", None),
        ("GET", "/v1/models/nothing", None),
        ("GET", "/props", None),
        ("POST", "/props", {}),
        ("GET", "/slots", None),
        ("POST", "/slots/0", {}),
        ("GET", "/lora-adapters", None),
        ("POST", "/lora-adapters", {}),
        ("GET", "/health", None),
        ("GET", "/livez", None),
        ("GET", "/v1/runs/run_1/events", None),
        ("DELETE", "/v1/runs/run_1", None),
        ("GET", "/v1/stream?conv_id=talk", None),
        ("POST", "/v1/streams/lookup", {"conversation_ids": []}),
    ],
)
async def test_answers_are_as_described(
    dispatcher: FakeDispatcher, method: str, url: str, body: Any
) -> None:
    dispatcher.script = _speak
    answer = await start(method, url, body and {"model": "smol"} | body).finish()
    assert answer.status < 500 or answer.status in (501, 503)
    check(method, url, answer)


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("/v1/models", 200),
        ("/v1/models/smol", 200),
        ("/v1/models/x", 404),
        ("/v1/models?limit=0", 400),
    ],
)
async def test_answers_in_anthropics_words_are_as_described(url: str, status: int) -> None:
    answer = await get(url, headers={"anthropic-version": "2023-06-01"})
    assert answer.status == status
    check("GET", url, answer)


async def test_refusals_are_as_described() -> None:
    for url in ("/v1/chat/completions", "/v1/messages", "/completion"):
        for body, key in ((b"{", None), (b"{}", "x"), (b"[]", None)):
            chosen = {} if key is None else {"key": key}
            answer = await start("POST", url, body, **chosen).finish()  # type: ignore[arg-type]
            assert 400 <= answer.status < 500
            check("POST", url, answer)


def _bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    """Give what is said of each JSON body, with its path."""
    for path, methods in document()["paths"].items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        if "application/json" in content:
            yield path, content["application/json"]


def _cut(document: dict[str, Any]) -> dict[str, Any]:
    """Leave one path of each tag and method."""
    kinds = {
        (method, one["tags"][0]): path
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    }
    paths = {path: document["paths"][path] for path in kinds.values()}
    return document | {"paths": paths, "components": {}}


def _speak(job: Any) -> Any:
    if not hasattr(job, "num_logprobs"):
        return [Vectors(0, 1, ("AACAPw==",) * len(job.inputs)), say("")[-1]]
    started, *_, done = say("a")
    return [started, Tokens("e", (101,), (JUDGED,) if job.num_logprobs is not None else ()), done]


def _routes() -> Iterator[tuple[str, str, type]]:
    for pattern in get_resolver("llamero.api.urls").url_patterns:
        path = str(pattern.pattern)
        for converter in ("str:", "path:"):
            path = path.replace(f"<{converter}", "{")
        view = pattern.callback.cls
        for method in ("get", "post", "put", "patch", "delete"):
            if hasattr(view, method):
                yield method.upper(), path.replace(">", "}"), view
