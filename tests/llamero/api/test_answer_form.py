"""JSON schemas of a request: a grammar in the job, or a 400 and no job; nothing in between."""

import itertools
import json
from typing import Any

import pytest

from inference.protocol.sampling import GrammarTrigger
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
        with_schema({"type": "array", "uniqueItems": True}),
        with_schema(False),
        with_schema("object"),
        with_schema(None),
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": []}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "name": 5}}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}}},
        {"response_format": {"type": "json_object", "schema": {"not": {}}}},
        {"response_format": {"type": "json_object", "schema": False}},
        {"response_format": {"type": "json_object", "schema": []}},
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


CHOICES = 'root ::= r0\nr0 ::= ("yes" | "no")\n'


@pytest.mark.parametrize(
    ("field", "value", "grammar"),
    [
        ("guided_json", PERSON, GRAMMAR),
        ("guided_json", json.dumps(PERSON), GRAMMAR),
        ("guided_regex", r"\d{2}(?P<unit>cm|m)?", None),
        ("guided_choice", ["yes", "no"], CHOICES),
        ("guided_grammar", 'root ::= "a"', 'root ::= "a"'),
        ("structured_outputs", {"json": PERSON}, GRAMMAR),
        ("structured_outputs", {"json_object": True, "disable_fallback": True}, None),
        ("structured_outputs", {"regex": "a+?b", "choice": None}, None),
        ("structured_outputs", {"choice": ["yes", "no"]}, CHOICES),
        ("structured_outputs", {"grammar": 'root ::= "a"'}, 'root ::= "a"'),
    ],
)
@pytest.mark.parametrize("url", [CHAT, "/v1/completions", "/completion"])
async def test_vllms_fields_are_taken_everywhere(
    dispatcher: FakeDispatcher, url: str, field: str, value: Any, grammar: str | None
) -> None:
    asked = HI if url == CHAT else {"model": "smol", "prompt": "x"}
    assert (await post(url, asked | {field: value})).status == 200
    sampling = dispatcher.jobs[0].sampling
    assert "root ::=" in sampling.grammar
    assert sampling.grammar_field == field
    if grammar is not None:
        assert sampling.grammar == grammar


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("guided_json", "{", "guided_json"),
        ("guided_json", '{"const": NaN}', "guided_json"),
        ("guided_json", '{"type": "number", "maximum": 1e999}', "guided_json"),
        ("guided_json", '{"type": "string", "type": "integer"}', "guided_json"),
        ("guided_json", r'{"const": "\ud800"}', "guided_json"),
        ("guided_json", '{"const": ' + "9" * 5000 + "}", "guided_json"),
        ("guided_json", {"not": {}}, "guided_json"),
        ("guided_regex", r"(a)\1", "guided_regex"),
        ("guided_regex", r"\bword", "guided_regex"),
        ("guided_regex", "(?=x)y", "guided_regex"),
        ("guided_regex", "", "guided_regex"),
        ("guided_regex", ["a"], "guided_regex"),
        ("guided_choice", [], "guided_choice"),
        ("guided_choice", ["a", ""], "guided_choice"),
        ("guided_choice", ["a", 1], "guided_choice"),
        ("guided_choice", "ab", "guided_choice"),
        ("guided_choice", [str(i) for i in range(2000)], "guided_choice"),
        ("guided_grammar", "root ::= ", "guided_grammar"),
        ("guided_grammar", 5, "guided_grammar"),
        ("grammar", 'root ::= root "a"', "grammar"),
        ("grammar", ["root"], "grammar"),
        ("structured_outputs", "json", "structured_outputs"),
        ("structured_outputs", {}, "structured_outputs"),
        ("structured_outputs", {"json": {}, "regex": "a"}, "structured_outputs"),
        ("structured_outputs", {"structural_tag": "x"}, "structured_outputs.structural_tag"),
        ("structured_outputs", {"json_object": 1}, "structured_outputs.json_object"),
        ("structured_outputs", {"regex": "("}, "structured_outputs.regex"),
        ("grammar_lazy", "yes", "grammar_lazy"),
        ("preserved_tokens", "x", "preserved_tokens"),
        ("preserved_tokens", ["x"] * 65, "preserved_tokens"),
    ],
)
async def test_a_form_that_cannot_be_kept_is_400(
    dispatcher: FakeDispatcher, field: str, value: Any, param: str
) -> None:
    answer = await post(CHAT, HI | {field: value})
    assert (answer.status, answer.error["param"]) == (400, param)
    assert dispatcher.jobs == []


async def test_a_regular_expression_is_refused_at_its_position() -> None:
    answer = await post(CHAT, HI | {"guided_regex": r"ab(?<=c)"})
    assert "position 2" in answer.error["message"]


FORMS: dict[str, Any] = {
    "grammar": 'root ::= "a"',
    "json_schema": {},
    "response_format": {"type": "json_object"},
    "structured_outputs": {"regex": "a"},
    "guided_json": {},
    "guided_regex": "a",
    "guided_choice": ["a"],
    "guided_grammar": 'root ::= "a"',
}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(FORMS, 2)))
async def test_any_two_forms_are_refused_by_name(first: str, second: str) -> None:
    answer = await post(CHAT, HI | {name: FORMS[name] for name in (first, second)})
    assert answer.status == 400
    assert first in answer.error["message"]
    assert second in answer.error["message"]


async def test_fields_that_ask_for_nothing_stand_beside_one_that_does(
    dispatcher: FakeDispatcher,
) -> None:
    free = {"grammar": "", "guided_json": None, "response_format": {"type": "text"}}
    assert (await post(CHAT, HI | free | {"guided_regex": "a"})).status == 200
    assert "root ::=" in dispatcher.jobs[0].sampling.grammar


LAZY = {"model": "smol", "prompt": "x", "grammar": 'root ::= "<f>"', "grammar_lazy": True}


async def test_lazy_grammars_are_read_as_llama_server_spells_them(
    dispatcher: FakeDispatcher,
) -> None:
    triggers = [
        {"type": 0, "value": "<f>", "token": 7},
        {"type": 1, "value": "<f>"},
        {"type": 2, "value": "(<f>)"},
        {"type": "pattern_full", "value": "(<f>).*"},
    ]
    body = LAZY | {"grammar_triggers": triggers, "preserved_tokens": ["<f>"]}
    answer = await post("/completion", body)
    sampling = dispatcher.jobs[0].sampling
    assert sampling.is_grammar_lazy
    assert sampling.preserved_tokens == ("<f>",)
    assert sampling.grammar_triggers == (
        GrammarTrigger(token=7),
        GrammarTrigger(word="<f>"),
        GrammarTrigger(pattern="(<f>)"),
        GrammarTrigger(pattern="^(<f>).*$"),
    )
    assert answer.json()["generation_settings"]["grammar_lazy"] is True


@pytest.mark.parametrize(
    "triggers",
    [
        None,
        [],
        {},
        ["<f>"],
        [{"type": 1}],
        [{"type": 1, "value": ""}],
        [{"type": 9, "value": "x"}],
        [{"type": True, "value": "x"}],
        [{"type": 0, "value": "x"}],
        [{"type": 0, "token": -1}],
        [{"type": 2, "value": "(?=x)"}],
        [{"type": 1, "value": "x" * 2000}],
        [{"type": 1, "value": "x"}] * 65,
    ],
)
async def test_triggers_that_cannot_work_are_400(dispatcher: FakeDispatcher, triggers: Any) -> None:
    answer = await post("/completion", LAZY | {"grammar_triggers": triggers})
    assert (answer.status, answer.error["param"]) == (400, "grammar_triggers")
    assert dispatcher.jobs == []


async def test_converted_schemas_are_kept_but_not_without_end() -> None:
    answer_form._compile.cache_clear()
    for number in range(3):
        await post(CHAT, HI | with_schema({"const": number % 2}))
    info = answer_form._compile.cache_info()
    assert (info.hits, info.currsize) == (1, 2)
    assert info.maxsize is not None
    assert info.maxsize <= 64
