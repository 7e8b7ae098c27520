"""What a key has used."""

from llamero.api.openapi.shapes import (
    COUNT,
    FLAG,
    TEXT,
    Schema,
    list_of,
    one_of,
    or_null,
    ref,
    shape,
)

COMPONENTS: dict[str, Schema] = {
    "UsageResult": shape(
        {
            "object": one_of("usage.result"),
            "model": or_null(TEXT),
            "num_model_requests": COUNT,
            "num_failed_requests": COUNT,
            "num_cancelled_requests": COUNT,
            "input_tokens": COUNT,
            "input_cached_tokens": COUNT,
            "output_tokens": COUNT,
            "output_reasoning_tokens": COUNT,
            "amount": shape({"value": TEXT, "currency": or_null(TEXT)}),
        }
    ),
    "UsageBucket": shape(
        {
            "object": one_of("bucket"),
            "start_time": COUNT,
            "end_time": COUNT,
            "results": list_of(ref("UsageResult")),
        }
    ),
    "UsagePage": shape(
        {
            "object": one_of("page"),
            "data": list_of(ref("UsageBucket")),
            "has_more": FLAG,
            "next_page": or_null(TEXT),
        }
    ),
}
