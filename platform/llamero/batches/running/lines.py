"""The lines of an input file: examined all at once before any is answered, then read in turn."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings

from llamero.api.json_body import parse_json
from llamero.errors import LlameroError

MAX_ERRORS = 100
MAX_CUSTOM_ID = 512
# What a line has beside the body of its request.
_ENVELOPE_BYTES = 16 * 1024
_CHUNK_LINES, _CHUNK_BYTES = 64, 1 << 20


class Line(msgspec.Struct, frozen=True):
    """One request. ``body`` is as it was sent."""

    custom_id: str
    body: msgspec.Raw


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A line and its number: blank lines do not count, and the first is 0."""

    number: int
    line: Line


@dataclass(slots=True)
class Examined:
    """What a file holds: so many requests for one model, or what is wrong with it."""

    num_lines: int = 0
    model: str = ""
    errors: list[dict[str, Any]] = field(default_factory=list)

    def blame(
        self, code: str, message: str, line: int | None = None, param: str | None = None
    ) -> None:
        """Note what is wrong."""
        self.errors.append({"code": code, "line": line, "message": message, "param": param})


def examine(path: Path, endpoint: str) -> Examined:
    """Read a whole file and judge each line; at most MAX_ERRORS are told."""
    found, seen = Examined(), set[str]()
    for place, raw in _raw_lines(path):
        if len(found.errors) >= MAX_ERRORS:
            return found
        if found.num_lines >= settings.MAX_BATCH_LINES:
            message = f"The file has more than {settings.MAX_BATCH_LINES} requests."
            found.blame("too_many_requests", message, place)
            return found
        found.num_lines += 1
        try:
            line = _read_object(raw)
            _check_line(line, endpoint, found.model)
            custom_id, found.model = line["custom_id"], line["body"]["model"]
            if custom_id in seen:
                message = f"custom_id {custom_id!r:.80} is used by an earlier line."
                raise LlameroError(400, "duplicate_custom_id", message, param="custom_id")
            seen.add(custom_id)
        except LlameroError as error:
            found.blame(error.code or "invalid_value", error.message, place, error.param)
    if not found.num_lines:
        found.blame("empty_file", "The file holds no requests.")
    return found


class LineReader:
    """Reads the lines that are left, a handful at a time."""

    def __init__(self, path: Path, first: int = 0) -> None:
        self._lines = enumerate(_raw_lines(path))
        self._first = first

    def read(self) -> list[NumberedLine]:
        """Give some of the next lines; none at the end."""
        found: list[NumberedLine] = []
        num_bytes = 0
        for number, (_, raw) in self._lines:
            if number < self._first:
                continue
            line = msgspec.json.decode(raw.removeprefix(BOM_UTF8), type=Line)
            found.append(NumberedLine(number, line))
            num_bytes += len(raw)
            if len(found) >= _CHUNK_LINES or num_bytes >= _CHUNK_BYTES:
                break
        return found


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Give each line that is not blank, with its place in the file; the first is 1.

    One that is too long is given cut, which is too long still.
    """
    limit = settings.MAX_BODY_BYTES + _ENVELOPE_BYTES
    with path.open("rb") as file:
        place = 0
        while raw := file.readline(limit + 1):
            place += 1
            if len(raw) > limit:
                yield place, raw
                return
            if raw.strip(BOM_UTF8 + b" \t\r\n"):
                yield place, raw


def _read_object(raw: bytes) -> dict[str, Any]:
    if len(raw) > settings.MAX_BODY_BYTES + _ENVELOPE_BYTES:
        message = (
            f"The line is longer than {settings.MAX_BODY_BYTES} bytes; nothing after it is read."
        )
        raise LlameroError(400, "line_too_long", message)
    try:
        line = parse_json(raw, "The line")
    except LlameroError as error:
        # The number that a reader of JSON counts is always the first.
        message = error.message.replace(" line 1", "")
        raise LlameroError(400, "invalid_json_line", message) from None
    if not isinstance(line, dict):
        raise LlameroError(400, "invalid_json_line", "The line must be a JSON object.")
    return line


def _check_line(line: dict[str, Any], endpoint: str, model: str) -> None:
    custom_id = _read_text(line, "custom_id")
    if len(custom_id) > MAX_CUSTOM_ID:
        message = f"custom_id may have at most {MAX_CUSTOM_ID} characters."
        raise LlameroError(400, "invalid_custom_id", message, param="custom_id")
    if _read_text(line, "method") != "POST":
        raise LlameroError(400, "invalid_method", "method must be POST.", param="method")
    if _read_text(line, "url") != endpoint:
        message = f"url must be that of the batch, {endpoint}."
        raise LlameroError(400, "mismatched_url", message, param="url")
    body = line.get("body")
    if not isinstance(body, dict):
        code = "missing_required_parameter" if body is None else "invalid_value"
        raise LlameroError(400, code, "body must be an object.", param="body")
    named = _read_text(body, "model", "body.")
    if model and named != model:
        message = f"All requests of a batch are for one model; earlier lines name {model!r:.80}."
        raise LlameroError(400, "mismatched_model", message, param="body.model")
    for name in ("stream", "background"):
        if body.get(name):
            message = f"body.{name} must be false: a batch gives whole answers, at its end."
            raise LlameroError(400, f"{name}_not_supported", message, param=f"body.{name}")


def _read_text(fields: dict[str, Any], name: str, before: str = "") -> str:
    value = fields.get(name)
    if value is None or value == "":
        code, problem = "missing_required_parameter", "is missing"
    elif not isinstance(value, str):
        code, problem = "invalid_value", "must be a string"
    else:
        return value
    raise LlameroError(400, code, f"{before}{name} {problem}.", param=f"{before}{name}")
