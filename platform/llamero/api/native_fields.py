"""llama-server's fields beside those of sampling, which every generating route takes."""

from typing import Any

from llamero.api.fields import RequestSerializer, StrictBoolean, StrictInteger
from llamero.api.pacing import read_pacing

_MAX_INDENT = 1024
_MAX_MILLISECONDS = 2**53


class NativeFields(RequestSerializer):
    """How an answer ends, what a full context drops, and what a stream tells beside its text.

    The last five are checked and change nothing here: docs/llama-server.md says why.
    """

    n_keep = StrictInteger(-1, required=False)
    n_discard = StrictInteger(0, required=False)
    n_indent = StrictInteger(0, _MAX_INDENT, required=False)
    t_max_predict_ms = StrictInteger(-1, _MAX_MILLISECONDS, required=False)
    timings_per_token = StrictBoolean(required=False)
    return_progress = StrictBoolean(required=False)
    sse_ping_interval = StrictInteger(-1, required=False)
    verbose = StrictBoolean(required=False)
    id_slot = StrictInteger(-1, required=False)
    n_cache_reuse = StrictInteger(0, required=False)
    t_max_prompt_ms = StrictInteger(-1, _MAX_MILLISECONDS, required=False)
    backend_sampling = StrictBoolean(required=False)
    reasoning_control = StrictBoolean(required=False)


def read_native_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Give what validated fields mean, by the names of ``GenerationSettings``."""
    return {
        "num_keep": fields.get("n_keep", 0),
        "num_discard": fields.get("n_discard", 0),
        "min_indent": fields.get("n_indent", 0),
        "line_limit_ms": max(0, fields.get("t_max_predict_ms", 0)),
        "tells_timings": fields.get("timings_per_token", False),
        "is_verbose": fields.get("verbose", False),
        "pacing": read_pacing(fields),
    }
