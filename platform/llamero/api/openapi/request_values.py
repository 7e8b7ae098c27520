"""What the fields hold that take any JSON, and are read by code that knows what it means."""

from llamero.api.openapi.answers_imports import SOURCES
from llamero.api.openapi.shapes import (
    ANY_OBJECT,
    ANYTHING,
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
    shape,
)

TOKENS = list_of(COUNT) | {"minItems": 1}
MIXED = list_of(either(TEXT, COUNT)) | {"minItems": 1}
PROMPTS = either(TEXT, TOKENS, list_of(TEXT) | {"minItems": 1}, list_of(TOKENS) | {"minItems": 1})
_PROMPT_OBJECT = shape({"prompt_string": TEXT})
_NATIVE_PROMPT = either(TEXT, MIXED, _PROMPT_OBJECT)
NATIVE_PROMPTS = either(_NATIVE_PROMPT, list_of(_NATIVE_PROMPT) | {"minItems": 1})
_PART = shape({"type": TEXT}, {"text": TEXT})
_CALL = shape(
    {"function": shape({"name": TEXT}, {"arguments": TEXT})},
    {"id": TEXT, "type": one_of("function")},
)
_MESSAGE = shape(
    {"role": one_of("system", "developer", "user", "assistant", "tool", "function")},
    {
        "content": or_null(either(TEXT, list_of(_PART))),
        "name": or_null(TEXT),
        "tool_calls": or_null(list_of(_CALL)),
        "tool_call_id": or_null(TEXT),
        "reasoning_content": or_null(TEXT),
    },
)
_FUNCTION = shape(
    {"name": TEXT}, {"description": TEXT, "parameters": ANY_OBJECT, "strict": or_null(FLAG)}
)
_BLOCK = shape({"type": TEXT})
_TURN = shape({"role": one_of("user", "assistant"), "content": either(TEXT, list_of(_BLOCK))})
_SCHEMA = either(ANY_OBJECT, FLAG)
_ADAPTER = shape({"id": either(COUNT, TEXT)}, {"scale": NUMBER})
_TRIGGER = shape({"type": either(COUNT, TEXT)}, {"value": TEXT, "token": COUNT})
_PLUGIN = shape({"name": TEXT}, {"params": map_of(either(TEXT, NUMBER, FLAG))})

VALUES: dict[str, Schema] = {
    "messages": list_of(_MESSAGE) | {"minItems": 1},
    "prompt": NATIVE_PROMPTS,
    "input": PROMPTS,
    "content": NATIVE_PROMPTS,
    "tokens": list_of(COUNT),
    "documents": list_of(either(TEXT, shape({"text": TEXT}))) | {"minItems": 1, "maxItems": 2048},
    "texts": list_of(TEXT) | {"minItems": 1, "maxItems": 2048},
    "samplers": either(TEXT, list_of(TEXT)),
    "plugins": list_of(_PLUGIN) | {"maxItems": 8},
    "logit_bias": either(map_of(either(NUMBER, FLAG)), list_of(list_of(ANYTHING))),
    "lora": list_of(_ADAPTER),
    "grammar": TEXT,
    "json_schema": _SCHEMA,
    "response_format": shape({"type": one_of("text", "json_object", "json_schema")}),
    "structured_outputs": ANY_OBJECT,
    "guided_json": either(_SCHEMA, TEXT),
    "guided_regex": TEXT,
    "guided_choice": list_of(TEXT) | {"minItems": 1, "maxItems": 1000},
    "guided_grammar": TEXT,
    "grammar_triggers": list_of(_TRIGGER),
    "preserved_tokens": list_of(either(TEXT, COUNT)),
    "response_fields": list_of(TEXT),
    "stream_options": shape({}, {"include_usage": or_null(FLAG)}),
    "tools": list_of(shape({"type": one_of("function"), "function": _FUNCTION})),
    "tool_choice": either(one_of("none", "auto", "required"), ANY_OBJECT),
    "functions": list_of(_FUNCTION),
    "function_call": either(one_of("none", "auto"), shape({"name": TEXT})),
    "chat_template_kwargs": ANY_OBJECT,
    "continue_final_message": either(FLAG, one_of("content")),
    "input_extra": list_of(shape({"text": TEXT}, {"filename": or_null(TEXT)})) | {"maxItems": 256},
    "metadata": ANY_OBJECT,
    # The Responses API's
    "include": list_of(TEXT),
    "PromptFields.input": either(TEXT, list_of(ANY_OBJECT)),
    "PromptFields.tools": list_of(
        shape(
            {"type": one_of("function"), "name": TEXT},
            {
                "description": or_null(TEXT),
                "parameters": or_null(ANY_OBJECT),
                "strict": or_null(FLAG),
            },
        )
    ),
    "PromptFields.tool_choice": either(one_of("none", "auto", "required"), ANY_OBJECT),
    "PromptFields.reasoning": shape({}, {"effort": or_null(TEXT), "summary": or_null(TEXT)}),
    "PromptFields.text": shape({}, {"format": ANY_OBJECT, "verbosity": or_null(TEXT)}),
    "ResponseFields.metadata": map_of(TEXT),
    "BatchSerializer.metadata": map_of(TEXT),
    "BatchSerializer.output_expires_after": shape(
        {"anchor": one_of("created_at"), "seconds": COUNT}
    ),
    # Anthropic's
    "PromptSerializer.messages": list_of(_TURN) | {"minItems": 1},
    "PromptSerializer.system": either(TEXT, list_of(_BLOCK)),
    "PromptSerializer.tools": list_of(
        shape({"name": TEXT}, {"description": TEXT, "input_schema": ANY_OBJECT, "type": TEXT})
    ),
    "PromptSerializer.tool_choice": shape(
        {"type": one_of("auto", "any", "tool", "none")},
        {"name": TEXT, "disable_parallel_tool_use": FLAG},
    ),
    "PromptSerializer.thinking": shape(
        {"type": one_of("enabled", "adaptive", "disabled")},
        {"budget_tokens": COUNT, "display": one_of("summarized", "omitted", None)},
    ),
    "ImportSerializer.sources": SOURCES,
    "PromptSerializer.output_config": shape(
        {}, {"effort": TEXT, "format": shape({"type": one_of("json_schema"), "schema": ANY_OBJECT})}
    ),
}


def value_of(serializers: tuple[type, ...], field: str) -> Schema:
    """Describe a field of a serializer, whose classes are given, nearest first."""
    for kind in serializers:
        if (schema := VALUES.get(f"{kind.__name__}.{field}")) is not None:
            return schema
    return VALUES.get(field, ANYTHING)
