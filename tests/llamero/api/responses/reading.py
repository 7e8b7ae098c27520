"""Reads answers as OpenAI's client does, which refuses shapes and orders that are none of its."""

import json
from typing import Any

from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.llamero.api.asgi_client import Answer

_events: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def response_of(answer: Answer) -> Response:
    """Give the response of an answer, checked against the client's own types."""
    assert answer.status == 200, answer.body
    return Response.model_validate(answer.json())


def events_of(answer: Answer) -> list[dict[str, Any]]:
    """Give the events of a stream; each has the name, the number and the shape it should have."""
    assert answer.status == 200, answer.body
    found = []
    for block in answer.body.decode().split("\n\n")[:-1]:
        told = [line for line in block.split("\n") if not line.startswith(":")]
        if not told:
            continue
        lines = dict(line.split(": ", 1) for line in told)
        event = json.loads(lines["data"])
        assert lines["event"] == event["type"]
        assert set(lines) == {"event", "data"}
        _events.validate_python(event)
        found.append(event)
    return found


def types_of(events: list[dict[str, Any]]) -> list[str]:
    """Give the types of events, without what they have in common."""
    return [event["type"].removeprefix("response.") for event in events]


def accumulate(events: list[dict[str, Any]]) -> Response:
    """Give what the client makes of a whole stream."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in events:
        state.handle_event(_events.validate_python(event))
    assert state._completed_response is not None
    return state._completed_response
