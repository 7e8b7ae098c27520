"""The ways the data plane fails, as codes that travel to the client."""

from enum import StrEnum


class ErrorCode(StrEnum):
    """Stable error codes; the gateway maps each to an HTTP status and an API error type."""

    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    INVALID_PROMPT = "invalid_prompt"
    INVALID_TOKEN_ID = "invalid_token_id"
    INVALID_GRAMMAR = "invalid_grammar"
    INVALID_SAMPLING = "invalid_sampling"
    CHAT_TEMPLATE_ERROR = "chat_template_error"
    WRONG_MODEL_KIND = "wrong_model_kind"
    QUEUE_FULL = "queue_full"
    KEY_QUEUE_FULL = "key_queue_full"
    RATE_LIMIT_EXCEEDED = "rate_limit_exceeded"
    INSUFFICIENT_QUOTA = "insufficient_quota"
    NO_READY_REPLICA = "no_ready_replica"
    BROKER_UNAVAILABLE = "broker_unavailable"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    ENGINE_LOST = "engine_lost"
    ENGINE_FAILED = "engine_failed"
    REQUEST_CRASHED_ENGINE = "request_crashed_engine"
    PLUGIN_FAILED = "plugin_failed"
    REQUEST_CANCELLED = "request_cancelled"
    STREAM_DETACHED = "stream_detached"
    KEY_REVOKED = "key_revoked"
    TOKEN_EXPIRED = "token_expired"
    INTERNAL_ERROR = "internal_error"


class EngineError(Exception):
    """A failure of one job, with a code and a message fit for the client.

    ``param`` names the field of the request that is wrong, if known. ``retry_after`` is in
    seconds, where it is known when another try may succeed.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        is_retryable: bool = False,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.is_retryable = is_retryable
        self.param = param
        self.retry_after = retry_after
