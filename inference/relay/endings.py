"""What a job is told when it ends outside its engine, as encoded events."""

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Failed, FinishReason, encode_event

LOST_EVENT = Failed(
    ErrorCode.ENGINE_LOST,
    "The engine stopped while it worked on this request. Please try again.",
    is_retryable=True,
)
LATE_EVENT = Failed(ErrorCode.DEADLINE_EXCEEDED, "The request ran out of time.", is_retryable=True)
UNSERVED_EVENT = Failed(
    ErrorCode.NO_READY_REPLICA,
    "No replica of this model became ready in time. Please try again later.",
    is_retryable=True,
)

LOST = encode_event(LOST_EVENT)
LATE = encode_event(LATE_EVENT)
UNSERVED = encode_event(UNSERVED_EVENT)
CANCELLED = encode_event(Done(FinishReason.CANCELLED, 0, 0, 0))
