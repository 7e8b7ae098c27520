"""What a job is told when it ends outside its engine, as events and as constants of the scripts."""

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason, encode_event

LOST_EVENT = Failed(
    ErrorCode.ENGINE_LOST,
    "The service lost track of this request. Please try again.",
    is_retryable=True,
)
LATE_EVENT = Failed(ErrorCode.DEADLINE_EXCEEDED, "The request ran out of time.", is_retryable=True)
UNSERVED_EVENT = Failed(
    ErrorCode.NO_READY_REPLICA,
    "No replica of this model became ready in time. Please try again later.",
    is_retryable=True,
)
OFF_EVENT = Failed(
    ErrorCode.NO_READY_REPLICA, "This model was switched off before this request was answered."
)
CRASHED_EVENT = Failed(
    ErrorCode.REQUEST_CRASHED_ENGINE,
    "The engine ended each time it worked on this request, so it will not be tried again. "
    "Please change the request.",
)
CANCELLED_EVENT = Done(FinishReason.CANCELLED, 0, 0, 0)


def lua_endings() -> str:
    """Give the events' JSON to the scripts, as Lua locals."""
    events: dict[str, Event] = {
        "LATE_EVENT": LATE_EVENT,
        "UNSERVED_EVENT": UNSERVED_EVENT,
        "OFF_EVENT": OFF_EVENT,
        "CRASHED_EVENT": CRASHED_EVENT,
        "CANCELLED_EVENT": CANCELLED_EVENT,
    }
    lines = [f"local {name} = [==[{encode_event(e).decode()}]==]" for name, e in events.items()]
    return "\n".join(lines) + "\n"
