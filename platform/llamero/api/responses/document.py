"""The response object: what a request set, and what became of it."""

import time
from typing import Any

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done
from llamero.errors import LlameroError

Document = dict[str, Any]
_ERROR_CODES = {
    ErrorCode.QUEUE_FULL: "rate_limit_exceeded",
    ErrorCode.KEY_QUEUE_FULL: "rate_limit_exceeded",
}


def make_draft(response_id: str, model: str, echo: dict[str, Any]) -> Document:
    """Begin the document of a response; ``echo`` repeats what the request set."""
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(time.time()),
        "completed_at": None,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "usage": None,
        **echo,
    }


def usage_of(done: Done) -> dict[str, Any]:
    """Count a response; what the cache keeps of it costs nothing, and is not counted."""
    return {
        "input_tokens": done.num_prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": done.num_cached_tokens,
            "cache_write_tokens": 0,
        },
        "output_tokens": done.num_completion_tokens,
        "output_tokens_details": {"reasoning_tokens": done.num_reasoning_tokens},
        "total_tokens": done.num_prompt_tokens + done.num_completion_tokens,
    }


def error_of(error: LlameroError) -> dict[str, Any]:
    """Say why a response failed, in the few words that its document knows."""
    code = "invalid_prompt" if 400 <= error.status < 429 else "server_error"
    return {"code": _ERROR_CODES.get(error.code, code), "message": error.message}  # type: ignore[call-overload]
