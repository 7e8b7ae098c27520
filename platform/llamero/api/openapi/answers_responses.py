"""The answers of the Responses API, whole and as events."""

from llamero.api.openapi.answers_openai import EXTRAS, TOKEN
from llamero.api.openapi.shapes import (
    ANY_OBJECT,
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Schema,
    either,
    list_of,
    map_of,
    one_of,
    or_null,
    ref,
    shape,
)

_STATUS = one_of("in_progress", "completed", "incomplete")
_LOGPROBS = list_of(shape(TOKEN | {"top_logprobs": list_of(shape(TOKEN))}))
_THOUGHT = shape({"type": {"const": "reasoning_text"}, "text": TEXT})
_PART = either(
    shape(
        {
            "type": {"const": "output_text"},
            "text": TEXT,
            "annotations": list_of(ANY_OBJECT),
        },
        {"logprobs": _LOGPROBS},
    ),
    _THOUGHT,
    shape({"type": {"const": "input_text"}, "text": TEXT}),
    shape({"type": {"const": "refusal"}, "refusal": TEXT}),
)
_ITEM = {"id": TEXT, "status": _STATUS}


def _event(name: str, fields: dict[str, Schema]) -> Schema:
    return shape({"type": {"const": name}, "sequence_number": COUNT} | fields, EXTRAS)


def _events(names: tuple[str, ...], fields: dict[str, Schema]) -> list[Schema]:
    return [_event(f"response.{name}", fields) for name in names]


_PLACE = {"item_id": TEXT, "output_index": COUNT}
_IN_PART = _PLACE | {"content_index": COUNT}
_PHASES = ("created", "queued", "in_progress", "completed", "incomplete", "failed")

COMPONENTS: dict[str, Schema] = {
    "ResponseItem": either(
        shape(
            _ITEM
            | {
                "type": {"const": "message"},
                "role": one_of("assistant", "user", "system", "developer"),
                "content": list_of(_PART),
            }
        ),
        shape(
            _ITEM | {"type": {"const": "reasoning"}},
            {
                "summary": list_of(shape({"type": TEXT, "text": TEXT})),
                "content": list_of(_THOUGHT),
                "encrypted_content": TEXT,
            },
        ),
        shape(
            _ITEM
            | {
                "type": {"const": "function_call"},
                "call_id": TEXT,
                "name": TEXT,
                "arguments": TEXT,
            }
        ),
        shape(
            _ITEM
            | {
                "type": {"const": "function_call_output"},
                "call_id": TEXT,
                "output": either(TEXT, list_of(_PART)),
            }
        ),
    ),
    "Response": shape(
        {
            "id": TEXT,
            "object": one_of("response"),
            "created_at": COUNT,
            "completed_at": or_null(COUNT),
            "status": one_of(
                "queued", "in_progress", "completed", "incomplete", "failed", "cancelled"
            ),
            "error": or_null(shape({"code": TEXT, "message": TEXT})),
            "incomplete_details": or_null(shape({"reason": TEXT})),
            "model": TEXT,
            "output": list_of(ref("ResponseItem")),
            "usage": or_null(
                shape(
                    {
                        "input_tokens": COUNT,
                        "input_tokens_details": map_of(COUNT),
                        "output_tokens": COUNT,
                        "output_tokens_details": map_of(COUNT),
                        "total_tokens": COUNT,
                    }
                )
            ),
            "instructions": or_null(TEXT),
            "max_output_tokens": or_null(COUNT),
            "max_tool_calls": or_null(COUNT),
            "metadata": map_of(TEXT),
            "parallel_tool_calls": FLAG,
            "previous_response_id": or_null(TEXT),
            "prompt_cache_key": or_null(TEXT),
            "reasoning": map_of(or_null(TEXT)),
            "safety_identifier": or_null(TEXT),
            "service_tier": TEXT,
            "temperature": NUMBER,
            "text": map_of({}),
            "tool_choice": either(TEXT, map_of({})),
            "tools": list_of(map_of({})),
            "top_logprobs": COUNT,
            "top_p": NUMBER,
            "truncation": one_of("auto", "disabled"),
            "user": or_null(TEXT),
            "store": FLAG,
            "background": FLAG,
        }
    ),
    "ResponseEvent": either(
        *_events(_PHASES, {"response": ref("Response")}),
        *_events(
            ("output_item.added", "output_item.done"),
            {"output_index": COUNT, "item": ref("ResponseItem")},
        ),
        *_events(("content_part.added", "content_part.done"), _IN_PART | {"part": _PART}),
        *_events(("output_text.delta",), _IN_PART | {"delta": TEXT, "logprobs": _LOGPROBS}),
        *_events(("output_text.done",), _IN_PART | {"text": TEXT, "logprobs": _LOGPROBS}),
        *_events(("reasoning_text.delta",), _IN_PART | {"delta": TEXT}),
        *_events(("reasoning_text.done",), _IN_PART | {"text": TEXT}),
        *_events(("function_call_arguments.delta",), _PLACE | {"delta": TEXT}),
        *_events(("function_call_arguments.done",), _PLACE | {"name": TEXT, "arguments": TEXT}),
        _event("error", {"code": or_null(TEXT), "message": TEXT, "param": or_null(TEXT)}),
    ),
    "ResponseItems": shape(
        {
            "object": one_of("list"),
            "data": list_of(ref("ResponseItem")),
            "first_id": or_null(TEXT),
            "last_id": or_null(TEXT),
            "has_more": FLAG,
        }
    ),
    "DeletedResponse": shape({"id": TEXT, "object": one_of("response"), "deleted": FLAG}),
}
