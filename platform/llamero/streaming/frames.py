"""What travels over the chat socket: the frames clients send and the frames they get."""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from llamero.api.errors import error_object
from llamero.api.json_body import parse_json
from llamero.errors import InvalidValue, LlameroError

PROTOCOL_VERSION = 1
MAX_FRAME_BYTES = 256 * 1024
MAX_JOBS = 8
MAX_SEQ = 1 << 31
_NEW_RUN = re.compile(r"run_[0-9a-f]{32}")
_JOB_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


@dataclass(frozen=True, slots=True)
class AuthFrame:
    """The API key of a caller who could send it neither as a header nor as a subprotocol."""

    key: str


@dataclass(frozen=True, slots=True)
class StartFrame:
    """A chat to begin. ``body`` is what a REST client would post to /v1/chat/completions.

    ``run`` is what a resumable one is to be called.
    """

    id: str | None
    body: dict[str, Any]
    is_resumable: bool = False
    run: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeFrame:
    """A resumable chat to go on with, after its delta of this ``seq``."""

    id: str | None
    run: str
    after: int


@dataclass(frozen=True, slots=True)
class CancelFrame:
    """A chat to end now."""

    id: str


@dataclass(frozen=True, slots=True)
class PingFrame:
    """A sign of life, answered with a pong."""


ClientFrame = AuthFrame | StartFrame | ResumeFrame | CancelFrame | PingFrame


class Hello(msgspec.Struct, frozen=True, tag_field="type", tag="hello"):
    """The caller is known; chats may start."""

    version: int = PROTOCOL_VERSION
    max_jobs: int = MAX_JOBS
    max_frame_bytes: int = MAX_FRAME_BYTES


class Loading(msgspec.Struct, frozen=True, tag_field="type", tag="loading"):
    """The model is not loaded, and is being loaded for this chat; again every few seconds."""

    id: str
    model: str
    progress: float


class Queued(msgspec.Struct, frozen=True, tag_field="type", tag="queued", omit_defaults=True):
    """The chat was accepted and waits for a slot; again whenever its place has changed.

    Position 1 is next. ``run`` is what resumes the chat, if it may be.
    """

    id: str
    model: str
    position: int
    wait_seconds: float | None = None
    run: str | None = None


class Resumed(msgspec.Struct, frozen=True, tag_field="type", tag="resumed"):
    """The chat goes on, here."""

    id: str
    model: str
    run: str


class Started(msgspec.Struct, frozen=True, tag_field="type", tag="started"):
    """A slot has taken the chat."""

    id: str
    model: str
    cached_tokens: int


class Progress(msgspec.Struct, frozen=True, tag_field="type", tag="progress"):
    """Prompt tokens computed so far, cached ones included."""

    id: str
    processed: int
    total: int


class Delta(msgspec.Struct, frozen=True, tag_field="type", tag="delta"):
    """New text. ``seq`` is 1, 2, 3… without holes in all that a chat's answer is made of."""

    id: str
    seq: int
    text: str


class Reasoning(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning"):
    """More of what the model writes to itself before it answers."""

    id: str
    seq: int
    text: str


class Call(msgspec.Struct, frozen=True, tag_field="type", tag="call"):
    """The model calls a tool: the call of this ``index``, from 0, and of this id."""

    id: str
    seq: int
    index: int
    call_id: str
    name: str


class Arguments(msgspec.Struct, frozen=True, tag_field="type", tag="arguments"):
    """More of the JSON text of a call's arguments."""

    id: str
    seq: int
    index: int
    text: str


class Usage(msgspec.Struct, frozen=True):
    """Token counts, as in the REST API, those that are a part of others beside them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int
    reasoning_tokens: int


class Timings(msgspec.Struct, frozen=True):
    """Where the time went. ``predicted_*`` is the answer; 0 where nothing was measured."""

    prompt_n: int
    prompt_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_second: float


class Done(msgspec.Struct, frozen=True, tag_field="type", tag="done"):
    """The chat has ended well: stop, length, tool_calls or cancelled."""

    id: str
    finish_reason: str
    usage: Usage
    timings: Timings


class Error(msgspec.Struct, frozen=True, tag_field="type", tag="error", omit_defaults=True):
    """Something failed: the chat ``id``, or the frame or the socket if there is no id.

    ``error`` is the REST API's error object. Where another try may help, it should come after
    ``retry_after`` seconds.
    """

    error: dict[str, Any]
    id: str | None = None
    retryable: bool = False
    retry_after: float | None = None


class Pong(msgspec.Struct, frozen=True, tag_field="type", tag="pong"):
    """The answer to a ping."""


ContentFrame = Delta | Reasoning | Call | Arguments
ServerFrame = (
    Hello | Loading | Queued | Resumed | Started | Progress | ContentFrame | Done | Error | Pong
)

_encoder = msgspec.json.Encoder()


def encode_frame(frame: ServerFrame) -> str:
    """Give the JSON text of a frame."""
    return _encoder.encode(frame).decode()


def describe_error(error: LlameroError, job_id: str | None = None) -> Error:
    """Give the frame of an error."""
    body = error_object(error, is_native=False)
    is_retryable = error.retry_after is not None
    return Error(body, job_id, retryable=is_retryable, retry_after=error.retry_after)


def read_frame(text: str) -> ClientFrame:
    """Read what a client sent; raises LlameroError and nothing else, whatever it is."""
    raw = text.encode()
    if len(raw) > MAX_FRAME_BYTES:
        message = f"A frame may have {MAX_FRAME_BYTES} bytes at most."
        raise InvalidValue(None, message, "frame_too_large")
    fields = parse_json(raw, "The frame")
    if not isinstance(fields, dict):
        raise InvalidValue(None, "A frame must be a JSON object.", "invalid_frame")
    kind = fields.pop("type", "start" if "model" in fields else None)
    if kind == "start":
        is_resumable = _read_resumable(fields)
        run = _read_new_run(fields, is_resumable=is_resumable)
        return StartFrame(id=_read_id(fields), body=fields, is_resumable=is_resumable, run=run)
    if kind == "resume":
        return ResumeFrame(id=_read_id(fields), run=_read_run(fields), after=_read_after(fields))
    if kind == "cancel":
        return CancelFrame(id=_require_id(fields))
    if kind == "auth":
        return AuthFrame(key=_read_key(fields))
    if kind == "ping":
        return PingFrame()
    message = "type must be start, resume, cancel, ping or auth."
    raise InvalidValue("type", message, "unknown_frame_type")


def _read_id(fields: dict[str, Any]) -> str | None:
    value = fields.pop("id", None)
    if value is None:
        return None
    if not isinstance(value, str) or not _JOB_ID.fullmatch(value):
        raise InvalidValue("id", "id must be 1 to 64 letters, digits or any of _.:-")
    return value


def _require_id(fields: dict[str, Any]) -> str:
    job_id = _read_id(fields)
    if job_id is None:
        raise InvalidValue("id", "id is missing.", "missing_required_parameter")
    return job_id


def _read_resumable(fields: dict[str, Any]) -> bool:
    value = fields.pop("resumable", None)
    if value is not None and not isinstance(value, bool):
        raise InvalidValue("resumable", "resumable must be true or false.")
    return bool(value)


def _read_new_run(fields: dict[str, Any], *, is_resumable: bool) -> str | None:
    """Read what a client calls its chat, so that it can find it even if it never heard of it."""
    run = fields.pop("run", None)
    if run is None:
        return None
    if not isinstance(run, str) or not _NEW_RUN.fullmatch(run):
        raise InvalidValue("run", "run must be run_ and 32 digits of 0-9 and a-f.")
    if not is_resumable:
        raise InvalidValue("run", "run is only for resumable: true.")
    return run


def _read_run(fields: dict[str, Any]) -> str:
    run = fields.get("run")
    if not isinstance(run, str):
        raise InvalidValue("run", "run must be a string.")
    return run


def _read_after(fields: dict[str, Any]) -> int:
    after = fields.get("after", 0)
    if type(after) is not int or not 0 <= after < MAX_SEQ:
        raise InvalidValue("after", "after must be the seq of a delta, or 0.")
    return after


def _read_key(fields: dict[str, Any]) -> str:
    key = fields.get("key")
    if not isinstance(key, str):
        raise InvalidValue("key", "key must be a string.")
    return key
