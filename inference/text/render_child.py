"""The helper process that renders one model's chat template: a sandbox inside resource limits.

Run as a script by ``render_pool``; imports nothing of ours, so that it starts fast and holds no
secrets. Frames on stdin and stdout are a 4-byte big-endian length and JSON.
"""

import json
import os
import resource
import struct
import sys
import time
from functools import lru_cache
from typing import Any, BinaryIO

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_MEMORY_BYTES = 512 << 20
CPU_SECONDS = 3
MAX_ERROR_CHARS = 500
_HEADER = struct.Struct(">I")
_NEEDLE = "needle-7f3a"
_CALL_PROBES = (("", False), ("", True), (None, False), (None, True))


class GenerationTag(Extension):
    """Accept ``{% generation %}``, which training templates put around the assistant's words."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration is a plain set

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Keep what the tag encloses and drop the tag."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes HTML characters and sorts keys; models were trained without.
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def build_environment() -> ImmutableSandboxedEnvironment:
    """Build the environment that chat templates are written for."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", GenerationTag]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = time.strftime
    return environment


class Renderer:
    """Compiled templates, each with the shape of content it understands."""

    def __init__(self) -> None:
        self._environment = build_environment()
        self._compile = lru_cache(maxsize=4)(self._environment.from_string)
        self._wants_parts = lru_cache(maxsize=4)(self._probe_content_shape)
        self._call_shape = lru_cache(maxsize=4)(self._probe_call_shape)

    def render(self, source: str, messages: list[Any], variables: dict[str, Any]) -> str:
        """Render the messages; raises whatever the template does."""
        shape = as_parts if self._wants_parts(source) else as_text
        shaped = [dict(message, content=shape(message.get("content"))) for message in messages]
        if any(message.get("tool_calls") for message in messages):
            empty, has_objects = self._call_shape(source)
            shaped = [shape_calls(message, empty, has_objects) for message in shaped]
        return self._compile(source).render(variables, messages=shaped)

    def _probe_content_shape(self, source: str) -> bool:
        """Tell whether the template shows the text of content parts but not of a plain string."""
        template = self._compile(source)

        def shows(content: Any) -> bool:
            try:
                return _NEEDLE in template.render(messages=[{"role": "user", "content": content}])
            except Exception:  # a probe that the template refuses says no more than that
                return False

        return not shows(_NEEDLE) and shows([{"type": "text", "text": _NEEDLE}])

    def _probe_call_shape(self, source: str) -> tuple[str | None, bool]:
        """Tell how the template takes calls: what content is where there is none, and whether
        arguments are objects. Text is better where it is shown as it is: it is the model's own.
        """
        template = self._compile(source)
        arguments = json.dumps({_NEEDLE: 1})
        for content, has_objects in _CALL_PROBES:
            function = {
                "name": "f",
                "arguments": json.loads(arguments) if has_objects else arguments,
            }
            call = {"id": "abcdefghi", "type": "function", "function": function}
            messages = [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": content, "tool_calls": [call]},
            ]
            try:
                shown = template.render(messages=messages)
            except Exception:  # as above
                continue
            if arguments in shown or (has_objects and _NEEDLE in shown):
                return content, has_objects
        return _CALL_PROBES[0]


def as_text(content: Any) -> str:
    """Flatten content to one string; parts are joined by newlines, nothing becomes empty."""
    if isinstance(content, list):
        return "\n".join(_text_of(part) for part in content)
    return "" if content is None else str(content)


def shape_calls(message: dict[str, Any], empty: str | None, has_objects: bool) -> dict[str, Any]:
    """Give a message with its calls as a template takes them."""
    if not message.get("tool_calls"):
        return message
    calls = message["tool_calls"]
    if has_objects:
        calls = [
            dict(call, function=dict(call["function"], arguments=_read_arguments(call)))
            for call in calls
        ]
    return dict(message, tool_calls=calls, content=message["content"] or empty)


def _read_arguments(call: dict[str, Any]) -> Any:
    """Give the arguments of a call as an object; what is none stays as it is."""
    text = call["function"]["arguments"]
    if not isinstance(text, str):
        return text
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def as_parts(content: Any) -> list[Any]:
    """Give content as a list of text parts."""
    if isinstance(content, list):
        return [{"type": "text", "text": _text_of(part)} for part in content]
    return [{"type": "text", "text": as_text(content)}]


def _text_of(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    raise jinja2.TemplateError("Only text parts can be rendered by this model's chat template.")


def answer(renderer: Renderer, request: dict[str, Any]) -> dict[str, str]:
    """Render one request; every failure becomes a short message without a traceback."""
    try:
        text = renderer.render(request["template"], request["messages"], request["variables"])
        return {"text": text}
    except MemoryError:
        return {"error": "The chat template used too much memory."}
    except RecursionError:
        return {"error": "The chat template recursed too deeply."}
    except Exception as error:  # hostile templates raise anything; all of it is the template's
        return {"error": (str(error) or type(error).__name__)[:MAX_ERROR_CHARS]}


def limit_resources() -> None:
    """Give up, for good, memory growth, new files, new processes and file writes."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def _allow_cpu(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


def _read_frame(stream: BinaryIO) -> bytes | None:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    (length,) = _HEADER.unpack(header)
    return stream.read(length)


def _write_frame(stream: BinaryIO, payload: bytes) -> None:
    stream.write(_HEADER.pack(len(payload)) + payload)
    stream.flush()


def _warm_up(renderer: Renderer) -> None:
    # Loads what rendering imports lazily (time zones, error rewriting) while files can be opened.
    source = "{{ messages | tojson }}{{ strftime_now('%Y') }}{{ raise_exception('') }}"
    answer(renderer, {"template": source, "messages": [], "variables": {}})


def main() -> None:
    """Answer frames until stdin closes, which also happens when the parent dies."""
    renderer = Renderer()
    _warm_up(renderer)
    limit_resources()
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    _write_frame(stdout, b'{"ready":true}')
    while (frame := _read_frame(stdin)) is not None:
        _allow_cpu(CPU_SECONDS)
        reply = json.dumps(answer(renderer, json.loads(frame)), ensure_ascii=False)
        _write_frame(stdout, reply.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
    os._exit(0)
