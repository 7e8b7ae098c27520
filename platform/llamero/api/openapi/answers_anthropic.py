"""The answers of Anthropic's routes, whole and as events."""

from llamero.api.openapi.shapes import (
    ANY_OBJECT,
    COUNT,
    FLAG,
    TEXT,
    Schema,
    either,
    list_of,
    one_of,
    or_null,
    ref,
    shape,
)

_STOP_REASON = one_of(
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"
)
_END = {"stop_reason": or_null(_STOP_REASON), "stop_sequence": or_null(TEXT)}
_USAGE = {
    "input_tokens": COUNT,
    "cache_creation_input_tokens": COUNT,
    "cache_read_input_tokens": COUNT,
    "output_tokens": COUNT,
}
_MORE_USAGE = {
    "service_tier": one_of("standard"),
    "output_tokens_details": shape({"thinking_tokens": COUNT}),
}


def _event(name: str, **fields: Schema) -> Schema:
    return shape({"type": {"const": name}} | fields)


COMPONENTS: dict[str, Schema] = {
    "ContentBlock": either(
        shape({"type": {"const": "text"}, "text": TEXT}),
        shape({"type": {"const": "thinking"}, "thinking": TEXT, "signature": TEXT}),
        shape({"type": {"const": "tool_use"}, "id": TEXT, "name": TEXT, "input": ANY_OBJECT}),
    ),
    "Message": shape(
        {
            "id": TEXT,
            "type": one_of("message"),
            "role": one_of("assistant"),
            "model": TEXT,
            "content": list_of(ref("ContentBlock")),
            "usage": shape(_USAGE, _MORE_USAGE),
        }
        | _END
    ),
    "MessageEvent": either(
        _event("message_start", message=ref("Message")),
        _event("content_block_start", index=COUNT, content_block=ref("ContentBlock")),
        _event(
            "content_block_delta",
            index=COUNT,
            delta=either(
                shape({"type": {"const": "text_delta"}, "text": TEXT}),
                shape({"type": {"const": "thinking_delta"}, "thinking": TEXT}),
                shape({"type": {"const": "signature_delta"}, "signature": TEXT}),
                shape({"type": {"const": "input_json_delta"}, "partial_json": TEXT}),
            ),
        ),
        _event("content_block_stop", index=COUNT),
        _event("message_delta", delta=shape(_END), usage=shape(_USAGE, _MORE_USAGE)),
        _event("message_stop"),
        _event("ping"),
        ref("AnthropicError"),
    ),
    "MessageTokens": shape({"input_tokens": COUNT}),
    "AnthropicModel": shape(
        {
            "type": one_of("model"),
            "id": TEXT,
            "display_name": TEXT,
            "created_at": TEXT,
            "lifecycle": TEXT,
            "max_input_tokens": COUNT,
            "max_tokens": COUNT,
        }
    ),
    "AnthropicModelPage": shape(
        {
            "data": list_of(ref("AnthropicModel")),
            "has_more": FLAG,
            "first_id": or_null(TEXT),
            "last_id": or_null(TEXT),
        }
    ),
    "AnthropicError": shape(
        {
            "type": {"const": "error"},
            "error": shape({"type": TEXT, "message": TEXT}, {"details": ANY_OBJECT}),
            "request_id": or_null(TEXT),
        }
    ),
}
