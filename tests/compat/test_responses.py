"""The unmodified openai client, holding conversations that the server keeps."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.live import LiveLlamero
from tests.processes import wait_until

pytestmark = pytest.mark.model


class City(BaseModel):
    """A form to fill."""

    name: str
    is_capital: bool


@pytest.fixture
def asked(chat_model: str) -> dict[str, Any]:
    return {"model": chat_model, "input": "Hi", "temperature": 0, "max_output_tokens": 16}


def test_a_conversation_is_kept(client: openai.OpenAI, asked: dict[str, Any]) -> None:
    first = client.responses.create(**asked, instructions="Be brief.")
    assert first.output_text
    assert first.usage is not None
    assert client.responses.retrieve(first.id) == first
    second = client.responses.create(**asked | {"input": "Why?"}, previous_response_id=first.id)
    assert second.usage is not None
    counted = client.responses.input_tokens.count(
        model=asked["model"], input="Why?", previous_response_id=first.id
    )
    assert counted.input_tokens == second.usage.input_tokens
    items = client.responses.input_items.list(second.id, order="asc").data
    assert [item.to_dict()["content"][0]["text"] for item in items] == [  # type: ignore[index]
        "Hi",
        first.output_text,
        "Why?",
    ]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError):
        client.responses.create(**asked, previous_response_id=second.id)


def test_a_stream_says_what_the_whole_answer_says(
    client: openai.OpenAI, asked: dict[str, Any]
) -> None:
    whole = client.responses.create(**asked, store=False)
    with client.responses.stream(**asked) as stream:
        text = "".join(one.delta for one in stream if one.type == "response.output_text.delta")
    assert text == whole.output_text


def test_an_answer_is_parsed(client: openai.OpenAI, asked: dict[str, Any]) -> None:
    body = asked | {"input": "Paris", "max_output_tokens": 64}
    parsed = client.responses.parse(**body, text_format=City)
    assert isinstance(parsed.output_parsed, City)


def test_work_goes_on_in_the_background(client: openai.OpenAI, asked: dict[str, Any]) -> None:
    body = asked | {"input": "Tell me a long story."}
    stream = client.responses.create(**body, background=True, stream=True)
    first = next(iter(stream))
    stream.close()
    assert first.type == "response.created"
    rest = list(client.responses.retrieve(first.response.id, stream=True, starting_after=0))
    assert [one.sequence_number for one in rest] == list(range(1, len(rest) + 1))
    assert rest[-1].type == "response.incomplete"
    again = client.responses.retrieve(first.response.id)
    assert again == rest[-1].response


def test_what_nobody_reads_is_kept_all_the_same(
    client: openai.OpenAI, asked: dict[str, Any], live_llamero: LiveLlamero
) -> None:
    response = client.responses.create(**asked, background=True)

    def has_ended() -> bool:
        with closing(sqlite3.connect(live_llamero.home / "llamero.sqlite3")) as database:
            query = "SELECT state FROM conversations_storedresponse WHERE id = ?"
            [(state,)] = database.execute(query, (response.id,))
        return bool(state == "completed")

    wait_until(has_ended, what="the control worker")


def test_what_is_not_needed_any_more_is_cancelled(
    client: openai.OpenAI, asked: dict[str, Any]
) -> None:
    body = asked | {"max_output_tokens": 1500, "extra_body": {"min_tokens": 1500}}
    response = client.responses.create(**body, background=True)
    assert response.status == "queued"
    cancelled = client.responses.cancel(response.id)
    assert cancelled.status == "cancelled"
    assert client.responses.retrieve(response.id).status == "cancelled"


def test_a_function_is_called_and_its_answer_used(
    client: openai.OpenAI, asked: dict[str, Any]
) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Rome", "Oslo"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    tools = [{"type": "function", "name": "weather", "parameters": schema, "strict": True}]
    body = asked | {"input": "Weather in Rome?", "max_output_tokens": 64, "tools": tools}
    first = client.responses.create(**body, tool_choice="required", parallel_tool_calls=False)
    [call] = first.output
    assert call.type == "function_call"
    assert json.loads(call.arguments)["city"] in ("Rome", "Oslo")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny"}
    follow = body | {"input": [output], "tool_choice": "none"}
    second = client.responses.create(**follow, previous_response_id=first.id)
    assert second.output_text
