"""The answers of llama-server's routes."""

from llamero.api.openapi.shapes import (
    ANY_OBJECT,
    ANYTHING,
    COUNT,
    FLAG,
    INTEGER,
    NUMBER,
    TEXT,
    Schema,
    either,
    list_of,
    one_of,
    or_null,
    ref,
    shape,
)

_TOKEN = {"id": COUNT, "token": TEXT, "bytes": list_of(COUNT)}
_PLACE = {"index": COUNT, "id_slot": INTEGER, "tokens_predicted": COUNT, "tokens_evaluated": COUNT}
_PROBABILITIES = {"completion_probabilities": list_of(ref("TokenProbabilities"))}

COMPONENTS: dict[str, Schema] = {
    "Timings": shape(
        {
            "cache_n": COUNT,
            "prompt_n": COUNT,
            "prompt_ms": NUMBER,
            "prompt_per_token_ms": NUMBER,
            "prompt_per_second": NUMBER,
            "predicted_n": COUNT,
            "predicted_ms": NUMBER,
            "predicted_per_token_ms": NUMBER,
            "predicted_per_second": NUMBER,
        },
        {"draft_n": COUNT, "draft_n_accepted": COUNT},
    ),
    "PromptProgress": shape({"total": COUNT, "cache": COUNT, "processed": COUNT, "time_ms": COUNT}),
    "TokenProbabilities": either(
        shape(
            _TOKEN
            | {"logprob": NUMBER, "top_logprobs": list_of(shape(_TOKEN | {"logprob": NUMBER}))}
        ),
        shape(_TOKEN | {"prob": NUMBER, "top_probs": list_of(shape(_TOKEN | {"prob": NUMBER}))}),
    ),
    # Only what the request's ``response_fields`` name, where it has them; they may be paths.
    "NativeCompletion": shape(
        {},
        _PLACE
        | {
            "content": TEXT,
            "tokens": list_of(COUNT),
            "stop": FLAG,
            "model": TEXT,
            "generation_settings": ANY_OBJECT,
            "prompt": TEXT,
            "has_new_line": FLAG,
            "truncated": FLAG,
            "stop_type": one_of("none", "eos", "word", "limit"),
            "stopping_word": TEXT,
            "tokens_cached": COUNT,
            "timings": ref("Timings"),
        }
        | _PROBABILITIES,
    )
    | {"patternProperties": {".+/.+": ANYTHING}},
    "NativeCompletions": either(ref("NativeCompletion"), list_of(ref("NativeCompletion"))),
    "NativeCompletionFrame": either(
        shape(
            _PLACE | {"content": TEXT, "tokens": list_of(COUNT), "stop": {"const": False}},
            {"timings": ref("Timings"), "prompt_progress": ref("PromptProgress")} | _PROBABILITIES,
        ),
        ref("NativeCompletion"),
    ),
    "Tokens": shape(
        {
            "tokens": either(
                list_of(COUNT),
                list_of(shape({"id": COUNT, "piece": either(TEXT, list_of(COUNT))})),
            )
        }
    ),
    "Text": shape({"content": TEXT}),
    "Prompt": shape({"prompt": TEXT}),
    "InputTokens": shape({"object": one_of("response.input_tokens"), "input_tokens": COUNT}),
    "NativeEmbeddings": list_of(shape({"index": COUNT, "embedding": list_of(list_of(NUMBER))})),
    "Ranking": either(
        shape(
            {
                "model": TEXT,
                "object": one_of("list"),
                "usage": shape({"prompt_tokens": COUNT, "total_tokens": COUNT}),
                "results": list_of(
                    shape(
                        {"index": COUNT, "relevance_score": NUMBER},
                        {"document": shape({"text": TEXT})},
                    )
                ),
            }
        ),
        list_of(shape({"index": COUNT, "score": NUMBER}, {"text": TEXT})),
    ),
    "Props": shape(
        {
            "default_generation_settings": shape({"params": ANY_OBJECT, "n_ctx": COUNT}),
            "total_slots": COUNT,
            "model_alias": TEXT,
            "model_path": TEXT,
            "model_ftype": TEXT,
            "modalities": shape({"vision": FLAG, "audio": FLAG, "video": FLAG}),
            "media_marker": TEXT,
            "sampler_plugins": list_of(TEXT),
            "chat_template": TEXT,
            "chat_template_caps": ANY_OBJECT,
            "bos_token": TEXT,
            "eos_token": TEXT,
            "build_info": TEXT,
            "endpoint_slots": FLAG,
            "endpoint_props": FLAG,
            "endpoint_metrics": FLAG,
            "ui": FLAG,
            "ui_settings": ANY_OBJECT,
            "is_sleeping": FLAG,
            "cors_proxy_enabled": FLAG,
        }
    ),
    "Slots": list_of(
        shape(
            {
                "id": COUNT,
                "id_task": INTEGER,
                "n_ctx": COUNT,
                "speculative": FLAG,
                "is_processing": FLAG,
                "n_prompt_tokens": COUNT,
                "n_prompt_tokens_processed": COUNT,
                "n_prompt_tokens_cache": COUNT,
                "next_token": list_of(
                    shape(
                        {
                            "has_next_token": FLAG,
                            "has_new_line": FLAG,
                            "n_remain": INTEGER,
                            "n_decoded": COUNT,
                        }
                    )
                ),
            }
        )
    ),
    "Adapters": list_of(
        shape(
            {
                "id": COUNT,
                "name": TEXT,
                "path": TEXT,
                "scale": NUMBER,
                "task_name": TEXT,
                "prompt_prefix": TEXT,
            }
        )
    ),
    "Health": shape({"status": one_of("ok")}),
    "Ready": shape(
        {
            "status": one_of("ok"),
            "checks": shape({"database": one_of("ok"), "broker": one_of("ok")}),
        }
    ),
    "NativeError": shape(
        {
            "error": shape(
                {
                    "message": TEXT,
                    "type": TEXT,
                    "param": or_null(TEXT),
                    "code": or_null(either(COUNT, TEXT)),
                },
                {"n_prompt_tokens": COUNT, "n_ctx": COUNT},
            )
        }
    ),
}
