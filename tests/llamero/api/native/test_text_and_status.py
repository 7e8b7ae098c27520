"""llama-server's smaller routes: text and tokens, models, slots, what is refused."""

from typing import Any

import pytest

from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import FakeDispatcher

MESSAGES = [{"role": "user", "content": "Hi"}]
TOOL_TEMPLATE = (
    "{% for call in message.tool_calls %}{{ call.arguments | tojson }}{% endfor %}"
    "{{ tools }}{{ message.reasoning_content }}{% if part['type'] == 'text' %}{% endif %}"
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("ab", [97, 98]),
        (["a", 5, "b"], [97, 5, 98]),
        (["a", "b"], [97, 98]),
        ("", []),
        ([], []),
        ([""], []),
        (["", ""], []),
    ],
)
async def test_texts_and_ids_may_be_mixed(content: Any, expected: list[int]) -> None:
    assert (await post("/tokenize", {"content": content})).json() == {"tokens": expected}


async def test_nothing_is_no_tokens_and_no_text() -> None:
    assert (await post("/tokenize", {})).json() == {"tokens": []}
    assert (await post("/detokenize", {})).json() == {"content": ""}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"content": 5}, "content"),
        ({"content": ["a", -1]}, "content"),
        ({"content": ["a", True]}, "content"),
        ({"content": ["a", 5], "with_pieces": True}, "with_pieces"),
    ],
)
async def test_a_wrong_text_is_named(fields: dict[str, Any], param: str) -> None:
    answer = await post("/tokenize", fields)
    assert (answer.status, answer.error["param"]) == (400, param)


async def test_inputs_may_be_objects() -> None:
    for content in (
        {"prompt_string": "ab"},
        {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ):
        assert (await post("/completion", {"prompt": content})).json()["prompt"] == "\x01ab"
    for parts in ("text", [], [{"type": "image_url"}], [{"type": "text"}]):
        answer = await post("/completion", {"prompt": {"content": parts}})
        assert (answer.status, answer.error["param"]) == (400, "prompt")


async def test_a_chat_needs_no_model_on_the_native_address() -> None:
    document = (await post("/chat/completions", {"messages": MESSAGES})).json()
    assert (document["model"], document["object"]) == ("smol", "chat.completion")
    answer = await post("/chat/completions", {"messages": MESSAGES * 200})
    assert (answer.status, answer.error["type"]) == (400, "exceed_context_size_error")
    assert (await post("/v1/chat/completions", {"messages": MESSAGES})).status == 400


async def test_a_response_needs_no_model_on_the_native_address() -> None:
    document = (await post("/responses", {"input": "Hi", "store": False})).json()
    assert (document["model"], document["object"]) == ("smol", "response")
    assert (await post("/responses/input_tokens", {"input": "Hi"})).json()["input_tokens"] > 2
    answer = await post("/responses", {"input": 5, "store": False})
    assert (answer.status, answer.error["code"]) == (400, 400)
    assert (await post("/v1/responses", {"input": "Hi", "store": False})).status == 400


@pytest.mark.parametrize("prefix", ["", "/v1"])
async def test_a_prompt_can_be_counted(prefix: str) -> None:
    document = (
        await post(f"{prefix}/chat/completions/input_tokens", {"messages": MESSAGES})
    ).json()
    assert document["object"] == "response.input_tokens"
    assert document["input_tokens"] > 2


@pytest.mark.parametrize("action", ["save", "restore", "erase", "other"])
async def test_slots_belong_to_everybody(action: str) -> None:
    answer = await post(f"/slots/0?action={action}", {"filename": "../x"})
    assert (answer.status, answer.error["type"]) == (501, "not_supported_error")


async def test_properties_cannot_be_set() -> None:
    answer = await post("/props", {"a": 1})
    assert (answer.status, answer.error["type"]) == (501, "not_supported_error")


@pytest.mark.parametrize("value", ["1", "true"])
async def test_no_idle_slot_is_an_error_on_request(dispatcher: FakeDispatcher, value: str) -> None:
    assert (await get(f"/slots?model=smol&fail_on_no_slot={value}")).status == 200
    dispatcher.statuses = ()
    answer = await get(f"/slots?model=smol&fail_on_no_slot={value}")
    assert (answer.status, answer.error["type"]) == (503, "unavailable_error")
    assert (await get("/slots?model=smol&fail_on_no_slot=")).status == 200


async def test_models_are_listed_twice() -> None:
    document = (await get("/models")).json()
    assert [one["id"] for one in document["data"]] == [one["name"] for one in document["models"]]
    assert document["models"][0]["details"]["format"] == "gguf"
    assert document["data"][1]["aliases"] == ["tiny"]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("", set()),
        ("{{ messages }}", {"system_role", "string_content"}),
        ("{{ raise_exception('System role not supported') }}", {"string_content"}),
        (
            TOOL_TEMPLATE,
            {"system_role", "string_content", "tools", "tool_calls", "parallel_tool_calls",
             "object_arguments", "typed_content", "preserve_reasoning"},
        ),
    ],
)  # fmt: skip
async def test_props_tell_what_a_template_speaks_of(
    dispatcher: FakeDispatcher, template: str, expected: set[str]
) -> None:
    dispatcher.chat_template = template
    told = (await get("/props")).json()["chat_template_caps"]
    assert {name for name, is_so in told.items() if is_so} == {f"supports_{n}" for n in expected}
    assert len(told) == 9


async def test_props_have_all_of_llama_servers_names() -> None:
    names = (
        "default_generation_settings total_slots model_alias model_ftype model_path modalities "
        "media_marker endpoint_slots endpoint_props endpoint_metrics ui ui_settings chat_template "
        "chat_template_caps bos_token eos_token build_info is_sleeping cors_proxy_enabled"
    )
    assert set(names.split()) <= set((await get("/props")).json())
