"""JSON schemas of a request: a grammar in the job, or a 400 and no job; nothing in between."""

from typing import Any

import pytest

from inference.text.grammar import read_grammar
from inference.text.json_schema import schema_to_grammar
from llamero.api import answer_form
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import FakeDispatcher

CHAT = "/v1/chat/completions"
HI = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 2000}, "age": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}
GRAMMAR = schema_to_grammar(PERSON, param="x")
SCHEMA_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "person", "strict": True, "schema": PERSON},
}


def with_schema(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (CHAT, HI | {"response_format": SCHEMA_FORMAT}),
        (CHAT, HI | {"response_format": {"type": "json_schema", "schema": PERSON}}),
        (CHAT, HI | {"response_format": {"type": "json_object", "schema": PERSON}}),
        (CHAT, HI | {"json_schema": PERSON}),
        ("/v1/completions", {"model": "smol", "prompt": "x", "response_format": SCHEMA_FORMAT}),
        ("/completion", {"model": "smol", "prompt": "x", "json_schema": PERSON}),
    ],
)
async def test_a_schema_becomes_the_grammar_of_the_job(
    dispatcher: FakeDispatcher, url: str, body: dict[str, Any]
) -> None:
    assert (await post(url, body)).status == 200
    assert [job.sampling.grammar for job in dispatcher.jobs] == [GRAMMAR]


@pytest.mark.parametrize(
    "schema", [{}, True, {"type": "object"}, {"type": "object", "properties": {}}]
)
async def test_an_empty_schema_is_any_json(dispatcher: FakeDispatcher, schema: Any) -> None:
    assert (await post(CHAT, HI | with_schema(schema))).status == 200
    read_grammar(dispatcher.jobs[0].sampling.grammar)


async def test_an_empty_native_schema_constrains_too(dispatcher: FakeDispatcher) -> None:
    await post("/completion", {"model": "smol", "prompt": "x", "json_schema": {}})
    assert "root ::=" in dispatcher.jobs[0].sampling.grammar


async def test_properties_keep_the_order_they_were_sent_in(dispatcher: FakeDispatcher) -> None:
    for names in (("b", "a"), ("a", "b")):
        schema = {"properties": dict.fromkeys(names, True), "required": list(names)}
        assert (await post(CHAT, HI | with_schema(schema))).status == 200
    grammars = [job.sampling.grammar for job in dispatcher.jobs]
    assert grammars[0].index('b\\":"') < grammars[0].index('a\\":"')
    assert grammars[1].index('a\\":"') < grammars[1].index('b\\":"')


@pytest.mark.parametrize(
    "change",
    [
        with_schema({"type": "array", "maxItems": 100_000}),
        with_schema({"type": "string", "pattern": "(" * 10_000}),
        with_schema({"type": "string", "pattern": "^+a$"}),
        with_schema({"$ref": "#"}),
        with_schema({"enum": [str(i) for i in range(10_000)]}),
        with_schema({"not": {"type": "string"}}),
        with_schema(False),
        with_schema("object"),
        with_schema(None),
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": []}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "name": 5}}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}}},
        {"response_format": {"type": "json_object", "schema": {"not": {}}}},
        {"response_format": {"type": ["json_schema"]}},
    ],
)
async def test_a_schema_that_cannot_be_met_is_400(
    dispatcher: FakeDispatcher, change: dict[str, Any]
) -> None:
    for extra in ({}, {"stream": True}):
        answer = await post(CHAT, HI | change | extra)
        assert (answer.status, answer.error["param"]) == (400, "response_format")
    assert dispatcher.jobs == []


async def test_a_refusal_names_the_place_in_the_schema() -> None:
    schema = {"properties": {"a": {"type": "array", "uniqueItems": True}}}
    answer = await post(CHAT, HI | with_schema(schema))
    assert answer.error["code"] == "invalid_grammar"
    assert "#/properties/a/uniqueItems" in answer.error["message"]
    native = await post("/completion", {"model": "smol", "prompt": "x", "json_schema": schema})
    assert (native.status, native.error["param"]) == (400, "json_schema")


@pytest.mark.parametrize(
    "change",
    [
        {"grammar": 'root ::= "a"', "json_schema": {}},
        {"grammar": 'root ::= "a"', "response_format": {"type": "json_object"}},
        {"json_schema": {}, "response_format": SCHEMA_FORMAT},
    ],
)
async def test_two_forms_at_once_are_400(
    dispatcher: FakeDispatcher, change: dict[str, Any]
) -> None:
    answer = await post(CHAT, HI | change)
    assert (answer.status, answer.error["param"]) == (400, next(iter(change)))
    assert dispatcher.jobs == []


async def test_converted_schemas_are_kept_but_not_without_end() -> None:
    answer_form._compile.cache_clear()
    for number in range(3):
        await post(CHAT, HI | with_schema({"const": number % 2}))
    info = answer_form._compile.cache_info()
    assert (info.hits, info.currsize) == (1, 2)
    assert info.maxsize is not None
    assert info.maxsize <= 64
