"""Fields of a request that are small objects: each checked, and repeated as it was understood."""

from dataclasses import dataclass
from typing import Any

from llamero.api.turn import AS_THE_MODEL_LIKES, EFFORTS, ReasoningWish
from llamero.errors import InvalidValue

MAX_METADATA = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512
_INCLUDABLE = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
_SUMMARIES = ("auto", "concise", "detailed")
_VERBOSITIES = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class ReasoningField:
    """``reasoning``: what is wished of the model, and what the response repeats."""

    wish: ReasoningWish
    echo: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextField:
    """``text``: the form of the answer, and what the response repeats."""

    format: dict[str, Any]
    echo: dict[str, Any]


def read_reasoning(value: Any) -> ReasoningField:
    """Validate ``reasoning``."""
    fields = _read_object(value, "reasoning")
    effort = _read_word(fields, "effort", tuple(EFFORTS), "reasoning")
    summary = _read_word(fields, "summary", _SUMMARIES, "reasoning")
    wish = AS_THE_MODEL_LIKES
    if effort is not None:
        wish = ReasoningWish(is_enabled=effort != "none", effort=EFFORTS[effort])
    return ReasoningField(wish, {"effort": effort, "summary": summary})


def read_text_field(value: Any) -> TextField:
    """Validate ``text``, but for what its format holds."""
    fields = _read_object(value, "text")
    verbosity = _read_word(fields, "verbosity", _VERBOSITIES, "text") or "medium"
    form = _read_object(fields.get("format"), "text.format") or {"type": "text"}
    return TextField(form, {"format": form, "verbosity": verbosity})


def read_include(value: Any) -> list[str]:
    """Validate ``include``: names of what a response may hold beside the usual."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidValue("include", "include must be a list of strings.")
    for i, name in enumerate(value):
        if name not in _INCLUDABLE:
            path = f"include[{i}]"
            raise InvalidValue(path, f"{path} must be one of {', '.join(_INCLUDABLE)}.")
    return value


def read_metadata(value: Any) -> dict[str, str]:
    """Validate ``metadata``: a few short texts by name."""
    fields = _read_object(value, "metadata")
    if len(fields) > MAX_METADATA:
        raise InvalidValue("metadata", f"metadata may hold at most {MAX_METADATA} pairs.")
    for key, text in fields.items():
        path = f"metadata.{key[:MAX_METADATA_KEY]}"
        if len(key) > MAX_METADATA_KEY:
            message = f"{path}…: keys may have at most {MAX_METADATA_KEY} characters."
            raise InvalidValue(path, message)
        if not isinstance(text, str) or len(text) > MAX_METADATA_VALUE:
            message = f"{path} must be a string of at most {MAX_METADATA_VALUE} characters."
            raise InvalidValue(path, message)
        if "\0" in key or "\0" in text:
            # Databases do not take them.
            raise InvalidValue("metadata", "metadata must hold no null characters.")
    return fields


def _read_object(value: Any, path: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidValue(path, f"{path} must be an object.")
    return value


def _read_word(fields: dict[str, Any], name: str, words: tuple[str, ...], path: str) -> str | None:
    word = fields.get(name)
    if word is None:
        return None
    if not isinstance(word, str) or word not in words:
        path = f"{path}.{name}"
        raise InvalidValue(path, f"{path} must be one of {', '.join(words)}.")
    return word
