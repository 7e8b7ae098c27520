"""A chat may go on with its last message, or end where its messages end."""

from typing import Any

import pytest

from inference.protocol.text import RenderChat
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import FakeDispatcher

BEGUN = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well"}]


def asked(dispatcher: FakeDispatcher) -> RenderChat:
    return next(one for one in dispatcher.questions if isinstance(one, RenderChat))


async def test_the_last_message_may_be_gone_on_with(dispatcher: FakeDispatcher) -> None:
    body = {"messages": BEGUN, "continue_final_message": True, "add_generation_prompt": False}
    assert (await post("/chat/completions", body)).status == 200
    question = asked(dispatcher)
    assert (question.prefill, len(question.messages)) == ("Well", 1)
    assert question.add_generation_prompt


@pytest.mark.parametrize(
    ("url", "fields", "prefill"),
    [
        ("/chat/completions", {}, "Well"),
        ("/chat/completions/input_tokens", {}, "Well"),
        ("/apply-template", {}, "Well"),
        ("/apply-template", {"continue_final_message": None}, "Well"),
        ("/chat/completions", {"continue_final_message": False}, ""),
        ("/chat/completions", {"add_generation_prompt": True}, ""),
        ("/chat/completions", {"messages": BEGUN[1:]}, ""),
        ("/v1/chat/completions", {}, ""),
        ("/v1/chat/completions", {"continue_final_message": "content"}, "Well"),
        ("/v1/chat/completions/input_tokens", {}, ""),
    ],
)
async def test_llama_servers_addresses_go_on_without_being_asked(
    dispatcher: FakeDispatcher, url: str, fields: dict[str, Any], prefill: str
) -> None:
    body = {"model": "smol", "messages": BEGUN} | fields
    assert (await post(url, body)).status == 200
    assert asked(dispatcher).prefill == prefill


async def test_two_last_answers_are_no_beginning(dispatcher: FakeDispatcher) -> None:
    body: dict[str, Any] = {"messages": [*BEGUN, BEGUN[1]]}
    answer = await post("/chat/completions", body)
    assert (answer.status, answer.error["param"]) == (400, "messages")
    for is_wanted in (True, False):
        answer = await post("/chat/completions", body | {"continue_final_message": is_wanted})
        assert answer.status == 200


async def test_reasoning_is_over_where_an_answer_has_begun(dispatcher: FakeDispatcher) -> None:
    dispatcher.chat_template = "{{ '<think>' }} {{ '</think>' }}"
    await post("/chat/completions", {"messages": BEGUN})
    assert asked(dispatcher).no_reasoning == ("<think>", "</think>")


@pytest.mark.parametrize("value", ["reasoning_content", "x", 1, 0, [], {}])
async def test_nothing_else_can_be_gone_on_with(value: Any) -> None:
    body = {"model": "smol", "messages": BEGUN, "continue_final_message": value}
    answer = await post("/v1/chat/completions", body)
    assert (answer.status, answer.error["param"]) == (400, "continue_final_message")


@pytest.mark.parametrize(("value", "expected"), [(False, False), (True, True), (None, True)])
async def test_no_turn_need_begin(
    dispatcher: FakeDispatcher, value: bool | None, expected: bool
) -> None:
    await post("/apply-template", {"messages": BEGUN, "add_generation_prompt": value})
    assert asked(dispatcher).add_generation_prompt is expected


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": BEGUN, "add_generation_prompt": True},
        {"messages": BEGUN[:1]},
        {"messages": BEGUN[1:]},
        {"messages": [BEGUN[0], {"role": "assistant", "content": ""}]},
    ],
)
async def test_what_cannot_be_gone_on_with_is_refused(fields: dict[str, Any]) -> None:
    answer = await post("/chat/completions", fields | {"continue_final_message": True})
    assert (answer.status, answer.error["param"]) == (400, "continue_final_message")


async def test_streams_begin_as_each_server_begins_them() -> None:
    for url, content in (("/chat/completions", None), ("/v1/chat/completions", "")):
        body = {"model": "smol", "messages": BEGUN[:1], "stream": True}
        first = (await post(url, body)).chunks[0]
        assert first["choices"][0]["delta"] == {"role": "assistant", "content": content}
