"""Read a request body as one JSON object, strictly: nothing is guessed."""

import json
import math
import re
from codecs import BOM_UTF8
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from llamero.errors import LlameroError

_BRACKET_OR_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_CHARSETS = frozenset({"utf-8", "utf8", "us-ascii"})


def read_json_object(request: HttpRequest) -> dict[str, Any]:
    """Give the body of a request; raises LlameroError 400, 413 or 415."""
    _check_kind(request)
    value = parse_json(request.body)
    if not isinstance(value, dict):
        raise LlameroError(400, "invalid_body", "The request body must be a JSON object.")
    return value


def _check_kind(request: HttpRequest) -> None:
    """Refuse a body that says it is something else than plain JSON in UTF-8."""
    if request.content_type != "application/json":
        raise _wrong_kind("Send the body with Content-Type: application/json.")
    charset = request.content_params.get("charset", "utf-8") if request.content_params else "utf-8"
    if charset.lower() not in _CHARSETS:
        raise _wrong_kind("Send the body in UTF-8.")
    if request.headers.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
        raise _wrong_kind("Send the body as it is, without a Content-Encoding.")


def parse_json(raw: bytes, name: str = "The request body") -> Any:
    """Read strict JSON: UTF-8, no NaN, no repeated keys, no broken surrogates, not too deep.

    ``name`` is what errors call it.
    """
    raw = raw.removeprefix(BOM_UTF8)
    if not raw or raw.isspace():
        raise LlameroError(400, "invalid_json", f"{name} is empty; it must be JSON.")
    _check_depth(raw, name)
    try:
        value = _decoder.decode(raw.decode())
        if _SURROGATE_ESCAPE.search(raw):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError:
        raise _invalid(name, "it holds text that is not valid Unicode") from None
    except RecursionError:
        raise _too_deep(name) from None
    except ValueError as error:
        raise _invalid(name, _describe(error)) from None
    return value


def _check_depth(raw: bytes, name: str) -> None:
    """Refuse deep nesting before a recursive parser sees it."""
    if raw.count(b"[") + raw.count(b"{") <= settings.MAX_JSON_DEPTH:
        return
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(raw):
        first = raw[match.start()]
        if first in b"[{":
            depth += 1
            if depth > settings.MAX_JSON_DEPTH:
                raise _too_deep(name)
        elif first in b"]}":
            depth -= 1


def _describe(error: ValueError) -> str:
    """Say where, without quoting the body (a number's text can be thousands of digits)."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno} column {error.colno}"
    if isinstance(error, _NotJson):
        return str(error)
    return "a number has too many digits"


class _NotJson(ValueError):
    """Something Python's reader would accept and JSON does not."""


def _read_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _NotJson("a number is out of range")
    return value


def _refuse_constant(name: str) -> float:
    raise _NotJson(f"{name} is not a JSON number")


def _read_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _NotJson("an object has the same key twice")
    return value


_decoder = json.JSONDecoder(
    parse_float=_read_float, parse_constant=_refuse_constant, object_pairs_hook=_read_pairs
)


def _wrong_kind(message: str) -> LlameroError:
    return LlameroError(415, "unsupported_media_type", message)


def _invalid(name: str, reason: str) -> LlameroError:
    return LlameroError(400, "invalid_json", f"{name} is not valid JSON: {reason}.")


def _too_deep(name: str) -> LlameroError:
    message = f"{name} nests deeper than {settings.MAX_JSON_DEPTH} levels."
    return LlameroError(400, "json_too_deep", message)
