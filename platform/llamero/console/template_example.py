"""What a model's chat template makes of a conversation, role by role: an example for its page.

Templates come from strangers' files. They are read by the process that reads headers, and rendered
by the one that renders all templates, with its limits on time, memory and output.
"""

import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from inference.gguf.examine import read_chat_template
from inference.gguf.inspect_template import TemplateFacts
from inference.gguf.verdict import GgufRejected
from inference.text.render_pool import RenderError, RenderPool
from llamero.console.access import may_see, staff_only
from models_registry.models import FileRole, ModelVersion

MAX_EXAMPLE_CHARS = 6000
MAX_TEMPLATE_CHARS = 20_000
# One at a time in each process: more would take threads from who has other things to do.
WAIT_SECONDS = 5.0
_USER = {"role": "user", "content": "What is a llama?"}
_SYSTEM = {"role": "system", "content": "Answer in one sentence."}
_ASSISTANT = {"role": "assistant", "content": "A camelid with good manners."}
_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tell the weather.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
_busy = threading.Lock()


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a rendered text: ``kind`` is same, added or removed."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """What one role changes; ``error`` says why the template refuses it."""

    title: str
    parts: tuple[Part, ...] = ()
    error: str = ""

    @property
    def is_unchanged(self) -> bool:
        """Whether the template takes no notice."""
        return all(part.kind == "same" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Examples:
    """All examples of a template, and its source; ``error`` says why there is none."""

    examples: tuple[Example, ...] = ()
    source: str = ""
    error: str = ""


@require_safe
@never_cache
@staff_only
@may_see("models_registry.view_modelversion")
def show_template(request: HttpRequest, pk: int) -> HttpResponse:
    """Give the examples of a version's template, for its page to fetch."""
    version = get_object_or_404(ModelVersion, pk=pk)
    use = version.files.filter(role=FileRole.WEIGHTS).select_related("file").order_by("position")
    first = use.first()
    if first is None or not version.facts.get("has_chat_template"):
        found = Examples()
    elif not _busy.acquire(timeout=WAIT_SECONDS):
        found = Examples(error="Other templates are being rendered: reload in a moment.")
    else:
        try:
            found = read_examples(str(first.file.path))
        except GgufRejected as error:
            found = Examples(error=error.reason)
        finally:
            _busy.release()
    return render(request, "console/template_example.html", {"found": found})


@lru_cache(maxsize=64)
def read_examples(path: str) -> Examples:
    """Read and render; a stored file never changes, so the answer does not either.

    Raises GgufRejected, which is not remembered: the machine may just have been too busy.
    """
    facts = read_chat_template(Path(path))
    if not facts.chat_template:
        return Examples()
    pool = RenderPool(size=1)
    try:
        return Examples(_make_examples(pool, facts), facts.chat_template[:MAX_TEMPLATE_CHARS])
    finally:
        pool.close()


def _make_examples(pool: RenderPool, facts: TemplateFacts) -> tuple[Example, ...]:
    def write(messages: list[dict[str, Any]], **variables: Any) -> str:
        known = {"bos_token": facts.bos_token, "eos_token": facts.eos_token, "tools": None}
        settled = known | {"add_generation_prompt": False} | variables
        return pool.render(facts.chat_template, messages, settled)[:MAX_EXAMPLE_CHARS]

    try:
        base = write([_USER])
    except RenderError as error:
        return (Example("A user's message", error=str(error)),)
    changes: tuple[tuple[str, list[dict[str, Any]], dict[str, Any]], ...] = (
        ("and before it a system message", [_SYSTEM, _USER], {}),
        ("and behind it an answer of the assistant", [_USER, _ASSISTANT], {}),
        ("and the beginning of the answer to come", [_USER], {"add_generation_prompt": True}),
        ("and a tool that may be called", [_USER], {"tools": [_TOOL]}),
    )
    found = [Example("A user's message", (Part("same", base),))]
    for title, messages, variables in changes:
        try:
            found.append(Example(title, compare(base, write(messages, **variables))))
        except RenderError as error:
            found.append(Example(title, error=str(error)))
    return tuple(found)


def compare(before: str, after: str) -> tuple[Part, ...]:
    """Tell what of a text stayed at its beginning and end, and what is in between now and was."""
    start = _num_alike(before, after)
    rest_before, rest_after = before[start:], after[start:]
    end = _num_alike(rest_before[::-1], rest_after[::-1])
    parts = (
        Part("same", before[:start]),
        Part("removed", rest_before[: len(rest_before) - end]),
        Part("added", rest_after[: len(rest_after) - end]),
        Part("same", before[len(before) - end :] if end else ""),
    )
    return tuple(part for part in parts if part.text)


def _num_alike(one: str, other: str) -> int:
    """Count the characters that two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
