"""What a run has told, folded into the answer that a chat keeps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, Tokens
from llamero.api.errors import error_object, from_failed
from llamero.api.turn import TurnFormat
from llamero.errors import LlameroError
from llamero.playground.models import MessageState
from llamero.streaming import frames
from llamero.streaming.turn_frames import NOTHING_DONE, TurnFrames


@dataclass(slots=True)
class Answer:
    """An answer as it ended."""

    state: MessageState = MessageState.DONE
    text: str = ""
    reasoning: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)

    def add(self, frame: frames.ServerFrame) -> None:
        """Take in what a window would have been told."""
        match frame:
            case frames.Delta():
                self.text += frame.text
            case frames.Reasoning():
                self.reasoning += frame.text
            case frames.Call():
                self.calls.append({"id": frame.call_id, "name": frame.name, "arguments": ""})
            case frames.Arguments():
                self.calls[frame.index]["arguments"] += frame.text
            case frames.Done():
                told = msgspec.to_builtins(frame)
                self.outcome = {name: told[name] for name in ("finish_reason", "usage", "timings")}


def read_answer(events: Sequence[Event], turn: TurnFormat) -> Answer | None:
    """Give the answer that a job's events tell, by the same reader as the socket's.

    None while its end has not been told.
    """
    answer, teller = Answer(), TurnFrames("", turn, 0)
    for event in events:
        match event:
            case Tokens():
                told = teller.tell(event)
            case Done():
                told = teller.end(event)
            case Failed(code=ErrorCode.REQUEST_CANCELLED):
                told = teller.end(NOTHING_DONE)
            case Failed():
                # What the reader still holds back belongs to the answer, too.
                _add_all(answer, teller.end(NOTHING_DONE))
                return as_failed(answer, from_failed(event))
            case _:
                continue
        _add_all(answer, told)
        if isinstance(event, Done | Failed):
            return answer
    return None


def as_failed(answer: Answer, error: LlameroError) -> Answer:
    """Have an answer end in an error."""
    answer.state = MessageState.FAILED
    answer.outcome = {"error": error_object(error, is_native=False)}
    return answer


def _add_all(answer: Answer, told: list[frames.ServerFrame]) -> None:
    for frame in told:
        answer.add(frame)
