"""The answers of OpenAI's routes, whole and as events, with what llama-server adds to them."""

from llamero.api.openapi.shapes import (
    ANY_OBJECT,
    COUNT,
    FLAG,
    INTEGER,
    NOTHING,
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

_FINISH = one_of("stop", "length", "tool_calls", "content_filter", "function_call")
TOKEN = {"id": COUNT, "token": TEXT, "logprob": NUMBER, "bytes": list_of(COUNT)}
_ENVELOPE = {"id": TEXT, "created": COUNT, "model": TEXT, "system_fingerprint": TEXT}
# llama-server's, where they were asked for.
EXTRAS = {"timings": ref("Timings"), "prompt_progress": ref("PromptProgress")}
_FUNCTION = shape({"name": TEXT, "arguments": TEXT})
_FUNCTION_DELTA = shape({}, {"name": TEXT, "arguments": TEXT})
_CALL = shape({"id": TEXT, "type": one_of("function"), "function": _FUNCTION})
_CALL_DELTA = shape(
    {"index": COUNT},
    {"id": TEXT, "type": one_of("function"), "function": _FUNCTION_DELTA},
)
_PROMPT_LOGPROBS = list_of(
    or_null(map_of(shape({"logprob": NUMBER, "rank": or_null(COUNT), "decoded_token": TEXT})))
)
_OLLAMA_TEXTS = dict.fromkeys(
    ("name", "model", "modified_at", "size", "digest", "type", "description", "parameters"), TEXT
)
_VERBOSE = {"__verbose": ANY_OBJECT}

COMPONENTS: dict[str, Schema] = {
    "Usage": shape(
        {
            "prompt_tokens": COUNT,
            "completion_tokens": COUNT,
            "total_tokens": COUNT,
            "prompt_tokens_details": shape({"cached_tokens": COUNT, "audio_tokens": COUNT}),
            "completion_tokens_details": shape(
                {
                    "reasoning_tokens": COUNT,
                    "audio_tokens": COUNT,
                    "accepted_prediction_tokens": COUNT,
                    "rejected_prediction_tokens": COUNT,
                }
            ),
        }
    ),
    "ChatLogprobs": shape(
        {
            "content": list_of(shape(TOKEN | {"top_logprobs": list_of(shape(TOKEN))})),
            "refusal": NOTHING,
        }
    ),
    "TextLogprobs": shape(
        {
            "tokens": list_of(TEXT),
            "token_logprobs": list_of(or_null(NUMBER)),
            "top_logprobs": list_of(or_null(map_of(NUMBER))),
            "text_offset": list_of(COUNT),
        }
    ),
    "ChatCompletion": shape(
        _ENVELOPE
        | {
            "object": one_of("chat.completion"),
            "choices": list_of(
                shape(
                    {
                        "index": COUNT,
                        "message": shape(
                            {
                                "role": one_of("assistant"),
                                "content": or_null(TEXT),
                                "refusal": NOTHING,
                            },
                            {
                                "reasoning_content": TEXT,
                                "tool_calls": list_of(_CALL),
                                "function_call": _FUNCTION,
                            },
                        ),
                        "logprobs": or_null(ref("ChatLogprobs")),
                        "finish_reason": _FINISH,
                    }
                )
            ),
            "usage": ref("Usage"),
        },
        {"timings": ref("Timings"), "prompt_logprobs": _PROMPT_LOGPROBS} | _VERBOSE,
    ),
    "ChatCompletionChunk": shape(
        _ENVELOPE
        | {
            "object": one_of("chat.completion.chunk"),
            "choices": list_of(
                shape(
                    {
                        "index": COUNT,
                        "delta": shape(
                            {},
                            {
                                "role": one_of("assistant"),
                                "content": or_null(TEXT),
                                "reasoning_content": TEXT,
                                "tool_calls": list_of(_CALL_DELTA),
                                "function_call": _FUNCTION_DELTA,
                            },
                        ),
                        "logprobs": or_null(ref("ChatLogprobs")),
                        "finish_reason": or_null(_FINISH),
                    }
                )
            ),
        },
        {"usage": or_null(ref("Usage"))} | EXTRAS,
    ),
    "Completion": shape(
        _ENVELOPE
        | {
            "object": one_of("text_completion"),
            "choices": list_of(
                shape(
                    {
                        "text": TEXT,
                        "index": COUNT,
                        "logprobs": or_null(ref("TextLogprobs")),
                        "finish_reason": _FINISH,
                    },
                    {"prompt_logprobs": _PROMPT_LOGPROBS},
                )
            ),
            "usage": ref("Usage"),
        },
        {"timings": ref("Timings")} | _VERBOSE,
    ),
    "CompletionChunk": shape(
        _ENVELOPE
        | {
            "object": one_of("text_completion"),
            "choices": list_of(
                shape(
                    {
                        "text": TEXT,
                        "index": COUNT,
                        "logprobs": or_null(ref("TextLogprobs")),
                        "finish_reason": or_null(_FINISH),
                    }
                )
            ),
        },
        {"usage": or_null(ref("Usage"))} | EXTRAS,
    ),
    "Embeddings": shape(
        {
            "object": one_of("list"),
            "model": TEXT,
            "data": list_of(
                shape(
                    {
                        "object": one_of("embedding"),
                        "index": COUNT,
                        "embedding": either(list_of(NUMBER), TEXT),
                    },
                    {"encoding_format": TEXT},
                )
            ),
            "usage": shape({"prompt_tokens": COUNT, "total_tokens": COUNT}),
        }
    ),
    "Model": shape(
        {
            "id": TEXT,
            "object": one_of("model"),
            "created": INTEGER,
            "owned_by": TEXT,
            "aliases": list_of(TEXT),
            "tags": list_of(TEXT),
            "kind": one_of("chat", "completion", "embedding", "rerank"),
            "architecture": shape(
                {"input_modalities": list_of(TEXT), "output_modalities": list_of(TEXT)}
            ),
            "meta": ANY_OBJECT,
            "status": shape(
                {"value": one_of("loaded", "loading", "sleeping", "unloaded"), "failed": FLAG}
            ),
        }
    ),
    "ModelList": shape(
        {
            "object": one_of("list"),
            "data": list_of(ref("Model")),
            "models": list_of(ref("OllamaModel")),
        }
    ),
    "OllamaModel": shape(
        _OLLAMA_TEXTS
        | {
            "tags": list_of(TEXT),
            "capabilities": list_of(TEXT),
            "details": shape(
                {
                    "parent_model": TEXT,
                    "format": TEXT,
                    "family": TEXT,
                    "families": list_of(TEXT),
                    "parameter_size": TEXT,
                    "quantization_level": TEXT,
                }
            ),
        }
    ),
    "KnownConversation": shape(
        {"conversation_id": TEXT, "is_done": FLAG, "started_at": COUNT, "completed_at": COUNT}
    ),
    "SocketTicket": shape({"object": one_of("socket_ticket"), "ticket": TEXT, "expires_at": COUNT}),
    "CancelledRun": shape({"id": TEXT, "object": one_of("run"), "cancelled": FLAG}),
    "Error": shape(
        {
            "error": shape(
                {
                    "message": TEXT,
                    "type": TEXT,
                    "param": or_null(TEXT),
                    "code": or_null(TEXT),
                },
                {"n_prompt_tokens": COUNT, "n_ctx": COUNT},
            )
        }
    ),
}
