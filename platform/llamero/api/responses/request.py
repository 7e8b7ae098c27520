"""A request for a response: from the JSON that a client sends to what is generated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings as site

from llamero.api.defaults import NO_DEFAULTS, RequestDefaults, with_defaults
from llamero.api.fields import (
    AnyValue,
    RequestSerializer,
    StrictBoolean,
    StrictInteger,
    StrictString,
    validate,
)
from llamero.api.generation import GenerationSettings
from llamero.api.lengths import NO_LIMIT, limit_of
from llamero.api.openai.settings import OpenAISerializer, read_settings
from llamero.api.responses.items import Item, read_input
from llamero.api.responses.small_fields import (
    read_include,
    read_metadata,
    read_reasoning,
    read_text_field,
)
from llamero.api.responses.text_format import naming_text_format, to_response_format
from llamero.api.responses.tools import ToolFields, read_tool_fields
from llamero.api.turn import ReasoningWish
from llamero.errors import InvalidValue, NotSupported

MAX_NAME_LENGTH = 512
_LENGTH_NAMES = ("max_output_tokens",)
# What has a server keep, or fetch, what it does not have.
_REFUSED = ("conversation", "prompt")


class PromptFields(RequestSerializer):
    """The fields that make a prompt, as POST /v1/responses/input_tokens takes them."""

    input = AnyValue(required=False)
    instructions = StrictString(required=False)
    previous_response_id = StrictString(required=False)
    tools = AnyValue(required=False)
    tool_choice = AnyValue(required=False)
    parallel_tool_calls = StrictBoolean(required=False)
    reasoning = AnyValue(required=False)
    text = AnyValue(required=False)
    truncation = StrictString(choices=("auto", "disabled"), required=False)

    def to_internal_value(self, data: Any) -> Any:
        """Refuse what is for other servers, then validate the rest."""
        for name in _REFUSED:
            if isinstance(data, Mapping) and data.get(name) is not None:
                raise NotSupported(name, f"{name} is not supported.")
        return super().to_internal_value(data)


class ResponseFields(PromptFields, OpenAISerializer):
    """The fields of POST /v1/responses."""

    max_output_tokens = StrictInteger(1, required=False)
    max_tool_calls = StrictInteger(1, required=False)
    top_logprobs = StrictInteger(0, 20, required=False)
    include = AnyValue(required=False)
    store = StrictBoolean(required=False)
    background = StrictBoolean(required=False)
    metadata = AnyValue(required=False)
    service_tier = StrictString(MAX_NAME_LENGTH, required=False)
    prompt_cache_key = StrictString(MAX_NAME_LENGTH, required=False)
    safety_identifier = StrictString(MAX_NAME_LENGTH, required=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a request adds to a conversation, and what the model may do about it."""

    items: list[Item]
    instructions: str
    previous: str
    tools: ToolFields
    reasoning: ReasoningWish
    settings: GenerationSettings
    is_truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest:
    """A validated request. ``echo`` is what the response repeats of it."""

    turn: Turn
    is_stored: bool
    is_background: bool
    echo: dict[str, Any]


def read_turn(body: Mapping[str, Any], response_id: str) -> Turn:
    """Validate the fields that make a prompt; raises ValidationError or LlameroError."""
    return _make_turn(validate(PromptFields, body), response_id)


def read_request(
    body: Mapping[str, Any], response_id: str, defaults: RequestDefaults = NO_DEFAULTS
) -> ResponseRequest:
    """Validate a body, over the defaults of who answers; raises ValidationError or LlameroError."""
    fields = with_defaults(validate(ResponseFields, body), defaults, _LENGTH_NAMES)
    is_background = fields.get("background", False)
    can_store = site.RESPONSE_RETENTION_DAYS > 0
    is_stored = fields.get("store", True) and can_store
    if is_background and not is_stored:
        reason = "store: true" if can_store else "a server that stores responses; this one does not"
        raise InvalidValue("background", f"background: true needs {reason}.")
    if fields.get("stream_options") is not None and not fields.get("stream"):
        raise InvalidValue("stream_options", "stream_options is only allowed with stream: true.")
    turn = _make_turn(fields, response_id)
    return ResponseRequest(
        turn=turn,
        is_stored=is_stored,
        is_background=is_background,
        echo=_make_echo(fields, turn) | {"store": is_stored, "background": is_background},
    )


def _make_turn(fields: dict[str, Any], response_id: str) -> Turn:
    previous = fields.get("previous_response_id", "")
    if "input" not in fields and not previous:
        raise InvalidValue("input", "input is missing.", "missing_required_parameter")
    is_parallel = fields.get("parallel_tool_calls", True)
    return Turn(
        items=read_input(fields.get("input", []), response_id),
        instructions=fields.get("instructions", ""),
        previous=previous,
        tools=read_tool_fields(
            fields.get("tools"), fields.get("tool_choice"), is_parallel=is_parallel
        ),
        reasoning=read_reasoning(fields.get("reasoning")).wish,
        settings=_read_settings(fields),
        is_truncated=fields.get("truncation") == "auto",
    )


def _read_settings(fields: dict[str, Any]) -> GenerationSettings:
    """Read how to generate; what only other APIs have (``n``) is no field here."""
    text = read_text_field(fields.get("text"))
    sampling = {name: value for name, value in fields.items() if name not in _NOT_HERE}
    response_format = to_response_format(text.format)
    if response_format is not None:
        sampling["response_format"] = response_format
    with naming_text_format():
        return read_settings(
            sampling,
            max_tokens=_read_limit(fields),
            num_logprobs=_read_num_logprobs(fields),
            num_prompt_logprobs=None,
        )


def _read_limit(fields: dict[str, Any]) -> int | None:
    """Read the longest answer; only a default may say that there is none."""
    return limit_of(fields.get("max_output_tokens", NO_LIMIT))


def _read_num_logprobs(fields: dict[str, Any]) -> int | None:
    wants = "message.output_text.logprobs" in read_include(fields.get("include"))
    num_top: int = fields.get("top_logprobs", 0)
    return num_top if wants or num_top else None


def _make_echo(fields: dict[str, Any], turn: Turn) -> dict[str, Any]:
    """Repeat what a request set, with the defaults in effect for what it did not."""
    sampling = turn.settings.sampling
    return {
        "instructions": fields.get("instructions"),
        "max_output_tokens": _read_limit(fields),
        "max_tool_calls": fields.get("max_tool_calls"),
        "metadata": read_metadata(fields.get("metadata")),
        "parallel_tool_calls": fields.get("parallel_tool_calls", True),
        "previous_response_id": fields.get("previous_response_id"),
        "prompt_cache_key": fields.get("prompt_cache_key"),
        "reasoning": read_reasoning(fields.get("reasoning")).echo,
        "safety_identifier": fields.get("safety_identifier"),
        "service_tier": "default",
        "temperature": sampling.temperature,
        "text": read_text_field(fields.get("text")).echo,
        "tool_choice": turn.tools.choice,
        "tools": turn.tools.tools,
        "top_logprobs": fields.get("top_logprobs", 0),
        "top_p": sampling.top_p,
        "truncation": fields.get("truncation", "disabled"),
        "user": fields.get("user"),
    }


# Fields of OpenAI's other text APIs.
_NOT_HERE = frozenset({"n", "response_format", "prompt_logprobs"})
