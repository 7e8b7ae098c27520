"""What a request for a message may not hold, and what a conversation becomes."""

from typing import Any

import pytest

from inference.protocol.text import RenderChat
from tests.llamero.api.asgi_client import KEY, post, start
from tests.llamero.api.fakes import FakeDispatcher

URL = "/v1/messages"
USER = {"role": "user", "content": "Hi"}
HI: dict[str, Any] = {"model": "smol", "max_tokens": 8, "messages": [USER]}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "é"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"}
TOOL = {"name": "look", "input_schema": {"type": "object"}}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "8"}, "max_tokens"),
        ({"model": None}, "model"),
        ({"model": "mini"}, "model"),
        ({"temperature": 1.5}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"stop_sequences": ["x"] * 17}, "stop_sequences"),
        ({"service_tier": "gold"}, "service_tier"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"user_id": 5}}, "metadata.user_id"),
        ({"metadata": {"user_id": "x" * 257}}, "metadata.user_id"),
        ({"mcp_servers": [{"type": "url", "url": "http://169.254.169.254/"}]}, "mcp_servers"),
        ({"container": "c"}, "container"),
        ({"chat_template": "{{ 1 }}"}, "chat_template"),
        ({"system": 5}, "system"),
        ({"system": [5]}, "system[0]"),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": ["Hi"]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": [], "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages[0].content"),
        ({"messages": [user()]}, "messages[0].content"),
        ({"messages": [user(5)]}, "messages[0].content[0]"),
        ({"messages": [user({"type": "text"})]}, "messages[0].content[0].text"),
        ({"messages": [user({"type": "image", "source": {}})]}, "messages[0].content[0].type"),
        ({"messages": [user({"type": "document"})]}, "messages[0].content[0].type"),
        ({"messages": [user({"type": "poem"})]}, "messages[0].content[0].type"),
        ({"messages": [user(CALL)]}, "messages[0].content[0].type"),
        ({"messages": [USER, assistant(CALL)]}, "messages[1].content[0]"),
        ({"messages": [USER, assistant(CALL), USER]}, "messages[1].content[0]"),
        ({"messages": [user(RESULT)]}, "messages[0].content[0].tool_use_id"),
        (
            {"messages": [USER, assistant(CALL), user(RESULT, RESULT)]},
            "messages[2].content[1].tool_use_id",
        ),
        ({"messages": [USER, assistant(CALL, CALL), user(RESULT)]}, "messages[1].content[1].id"),
        (
            {"messages": [USER, assistant(CALL), user(RESULT | {"content": [{"type": "image"}]})]},
            "messages[2].content[0].content[0].type",
        ),
        (
            {"messages": [USER, assistant(CALL), user(RESULT | {"is_error": 1})]},
            "messages[2].content[0].is_error",
        ),
        ({"messages": [USER, assistant(CALL | {"input": "x"})]}, "messages[1].content[0].input"),
        ({"messages": [USER, assistant(CALL | {"id": ""})]}, "messages[1].content[0].id"),
        ({"messages": [USER, assistant(text("It is "))]}, "messages[1].content"),
        (
            {"messages": [USER, assistant({"type": "thinking", "thinking": "hm"})]},
            "messages[1].content",
        ),
        ({"messages": [assistant(text("Hi"))]}, "messages"),
        ({"tools": {}}, "tools"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [TOOL | {"type": "web_search_20250305"}]}, "tools[0].type"),
        ({"tools": [TOOL | {"name": "a b"}]}, "tools[0].name"),
        ({"tools": [{"name": "look"}]}, "tools[0].input_schema"),
        ({"tools": [TOOL | {"input_schema": {"type": "array"}}]}, "tools[0].input_schema.type"),
        ({"tools": [TOOL | {"description": 5}]}, "tools[0].description"),
        ({"tools": [TOOL, TOOL]}, "tools[1].name"),
        ({"tools": [TOOL], "tool_choice": "auto"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice.name"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": 1}},
            "tool_choice.disable_parallel_tool_use",
        ),
        ({"thinking": True}, "thinking"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 8}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "adaptive", "display": "loud"}}, "thinking.display"),
        ({"thinking": {"type": "adaptive"}, "messages": [USER, assistant(text("I"))]}, "thinking"),
        ({"output_config": []}, "output_config"),
        ({"output_config": {"effort": "huge"}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format"),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "set"}}}},
            "output_config.format.schema",
        ),
    ],
)
async def test_a_wrong_value_names_its_field(
    dispatcher: FakeDispatcher, change: dict[str, Any], param: str
) -> None:
    answer = await post(URL, HI | change)
    error = answer.json()["error"]
    assert (answer.status, error["type"]) == (400, "invalid_request_error")
    assert error["details"]["param"] == param
    assert dispatcher.jobs == []


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 1, "top_k": 40, "top_p": 0.9},
        {"metadata": {"user_id": None}},
        {"service_tier": "auto"},
        {"tools": [TOOL], "tool_choice": {"type": "none"}},
        {"output_config": {"effort": "low", "format": None}},
        {"thinking": {"type": "disabled"}},
        {"betas": ["x"], "context_management": {"edits": []}, "foo": 1},
        {"cache_control": {"type": "ephemeral"}},
        {"messages": [USER, {"role": "assistant", "content": ""}]},
        {"system": [text("a"), text("b")]},
    ],
)
async def test_a_value_at_the_border_is_taken(change: dict[str, Any]) -> None:
    assert (await post(URL, HI | change)).status == 200


async def rendered(dispatcher: FakeDispatcher, *messages: Any, **fields: Any) -> RenderChat:
    """Give what the model is asked to render."""
    answer = await post(URL, HI | {"messages": list(messages)} | fields)
    assert answer.status == 200, answer.body
    question = dispatcher.questions[0]
    assert isinstance(question, RenderChat)
    return question


async def test_messages_of_a_role_in_a_row_are_one_turn(dispatcher: FakeDispatcher) -> None:
    question = await rendered(
        dispatcher,
        USER,
        user(text("a"), text("b")),
        assistant(text("c")),
        assistant(text("d")),
        USER,
    )
    assert question.messages == (
        {"role": "user", "content": "Hi\na\nb"},
        {"role": "assistant", "content": "cd"},
        {"role": "user", "content": "Hi"},
    )


async def test_a_last_answer_is_gone_on_with(dispatcher: FakeDispatcher) -> None:
    question = await rendered(dispatcher, USER, assistant(text("It"), text(" is")))
    assert question.messages == ({"role": "user", "content": "Hi"},)
    assert question.prefill == "It is"


async def test_calls_results_and_thoughts_are_told_in_the_templates_words(
    dispatcher: FakeDispatcher,
) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    failed = {"type": "tool_result", "tool_use_id": "2", "is_error": True, "content": [text("no")]}
    question = await rendered(
        dispatcher,
        USER,
        assistant(thought, hidden, text("I look."), CALL, CALL | {"id": "2"}),
        user(text("And?"), RESULT, failed),
        system="Be kind.",
    )
    system, first, answer, *results, last = question.messages
    assert system == {"role": "system", "content": "Be kind."}
    assert first == {"role": "user", "content": "Hi"}
    assert (answer["content"], answer["reasoning_content"]) == ("I look.", "hm")
    assert [call["id"] for call in answer["tool_calls"]] == ["1", "2"]
    assert answer["tool_calls"][0]["function"]["name"] == "look"
    assert [result["role"] for result in results] == ["tool", "tool"]
    assert [result["content"] for result in results] == ["seen", "Error: no"]
    assert [result["tool_call_id"] for result in results] == ["1", "2"]
    assert last == {"role": "user", "content": "And?"}


async def test_counting_takes_the_same_fields(dispatcher: FakeDispatcher) -> None:
    body = {name: value for name, value in HI.items() if name != "max_tokens"}
    answer = await post(f"{URL}/count_tokens", body | {"system": "x", "tools": [TOOL]})
    assert answer.status == 200
    wrong = await post(f"{URL}/count_tokens", body | {"messages": []})
    assert (wrong.status, wrong.json()["type"]) == (400, "error")


@pytest.mark.parametrize(
    ("method", "path", "key", "status", "kind"),
    [
        ("POST", URL, None, 401, "authentication_error"),
        ("GET", URL, None, 405, "invalid_request_error"),
        ("POST", f"{URL}/batches", "", 404, "not_found_error"),
        ("POST", "/m/smol/v1/messages/nothing", "", 404, "not_found_error"),
    ],
)
async def test_every_refusal_has_anthropics_shape(
    method: str, path: str, key: str | None, status: int, kind: str
) -> None:
    options: dict[str, Any] = {"key": None} if key is None else {}
    answer = await start(method, path, HI, **options).finish()
    document = answer.json()
    assert (answer.status, document["type"], document["error"]["type"]) == (status, "error", kind)
    assert document["request_id"] == answer.headers["request-id"]


async def test_a_body_that_is_no_json_or_too_large_has_anthropics_shape(settings: Any) -> None:
    answer = await post(URL, b"{")
    assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = await post(URL, b"{" + b" " * 2000 + b"}")
    assert (answer.status, answer.json()["error"]["type"]) == (413, "request_too_large")


async def test_an_overlong_prompt_is_told_in_the_words_that_agents_look_for() -> None:
    answer = await post(URL, HI | {"messages": [{"role": "user", "content": "x" * 300}]})
    assert answer.status == 400
    assert answer.json()["error"]["message"].startswith("prompt is too long: 306 tokens > 255")


async def test_a_key_may_come_as_anthropics_clients_send_it() -> None:
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01", "anthropic-beta": "x"}
    assert (await post(URL, HI, key=None, headers=headers)).status == 200
    assert (await post("/m/smol/v1/messages", HI | {"model": None})).status == 200
