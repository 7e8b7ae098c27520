"""A request for a message: from the JSON that a client sends to what is generated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from inference.protocol.errors import EngineError
from llamero.api.answer_form import read_answer_form
from llamero.api.anthropic.conversation import read_conversation
from llamero.api.anthropic.tools import read_tool_use
from llamero.api.chat import ChatRequest
from llamero.api.defaults import NO_DEFAULTS, RequestDefaults, with_defaults
from llamero.api.fields import (
    REFUSED_FIELDS,
    AnyValue,
    RequestSerializer,
    StopStrings,
    StrictFloat,
    StrictInteger,
    StrictString,
    validate,
)
from llamero.api.generation import GenerationSettings
from llamero.api.openai.settings import read_settings
from llamero.api.sampling import SamplingSerializer
from llamero.api.turn import EFFORTS, ReasoningWish
from llamero.errors import InvalidValue

MAX_STOP_SEQUENCES = 16
MAX_USER_ID_LENGTH = 256
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


class PromptSerializer(RequestSerializer):
    """The fields that make a prompt, as POST /v1/messages/count_tokens takes them."""

    # Nothing here is fetched from elsewhere or run.
    refused = (*REFUSED_FIELDS, "mcp_servers", "container")

    messages = AnyValue()
    system = AnyValue(required=False)
    tools = AnyValue(required=False)
    tool_choice = AnyValue(required=False)
    thinking = AnyValue(required=False)
    output_config = AnyValue(required=False)


class MessagesSerializer(PromptSerializer, SamplingSerializer):
    """The fields of POST /v1/messages."""

    max_tokens = StrictInteger(0)
    temperature = StrictFloat(0, 1, required=False)
    stop_sequences = StopStrings(MAX_STOP_SEQUENCES, required=False)
    metadata = AnyValue(required=False)
    service_tier = StrictString(choices=("auto", "standard_only"), required=False)


@dataclass(frozen=True, slots=True)
class MessagesRequest:
    """A validated request. ``hides_thinking`` keeps the words of thinking from the client."""

    chat: ChatRequest
    hides_thinking: bool


def read_messages_request(
    body: Mapping[str, Any], defaults: RequestDefaults = NO_DEFAULTS
) -> MessagesRequest:
    """Validate a body, over the defaults of who answers; raises ValidationError or LlameroError."""
    fields = with_defaults(validate(MessagesSerializer, body), defaults)
    _check_metadata(fields.get("metadata"))
    thinking = _read_thinking(fields, fields["max_tokens"])
    return MessagesRequest(
        chat=_make_chat(fields, _read_settings(fields), thinking.wish),
        hides_thinking=thinking.is_hidden,
    )


def read_prompt_request(body: Mapping[str, Any]) -> ChatRequest:
    """Validate the body of a question for the length of a prompt."""
    fields = validate(PromptSerializer, body)
    settings = read_settings({}, max_tokens=0, num_logprobs=None, num_prompt_logprobs=None)
    return _make_chat(fields, settings, _read_thinking(fields, None).wish)


def _make_chat(
    fields: dict[str, Any], settings: GenerationSettings, reasoning: ReasoningWish
) -> ChatRequest:
    conversation = read_conversation(fields.get("system"), fields["messages"])
    if conversation.prefill and reasoning.is_enabled:
        message = "thinking must be off where a last message of the assistant is to be continued."
        raise InvalidValue("thinking", message)
    return ChatRequest(
        messages=conversation.messages,
        prefill=conversation.prefill,
        settings=settings,
        template_kwargs={},
        tools=read_tool_use(fields.get("tools"), fields.get("tool_choice")),
        reasoning=reasoning,
    )


def _read_settings(fields: dict[str, Any]) -> GenerationSettings:
    """Read how to generate; a message of no tokens is for having its prompt kept."""
    max_tokens = fields["max_tokens"]
    given = fields | {"stop": fields.get("stop_sequences", ())}
    form = _read_config(fields.get("output_config")).get("format")
    if form is not None:
        given["grammar"] = _read_format(form)
    settings = read_settings(
        given, max_tokens=max_tokens, num_logprobs=None, num_prompt_logprobs=None
    )
    if form is not None:
        field = "output_config.format.schema"
        sampling = msgspec.structs.replace(settings.sampling, grammar_field=field)
        settings = replace(settings, sampling=sampling)
    return replace(settings, warms_cache=max_tokens == 0)


def _read_format(form: Any) -> str:
    """Give the grammar of an output format."""
    path = "output_config.format"
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        raise InvalidValue(path, f"{path} must be an object of type json_schema.")
    if not isinstance(form.get("schema"), dict):
        raise InvalidValue(f"{path}.schema", f"{path}.schema must be a JSON schema.")
    try:
        return read_answer_form({"json_schema": form["schema"]}).grammar
    except EngineError as error:
        raise EngineError(error.code, error.message, param=f"{path}.schema") from None


def _read_config(config: Any) -> dict[str, Any]:
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise InvalidValue("output_config", "output_config must be an object.")
    return config


@dataclass(frozen=True, slots=True)
class _Thinking:
    wish: ReasoningWish
    is_hidden: bool = False


def _read_thinking(fields: dict[str, Any], max_tokens: int | None) -> _Thinking:
    """Read whether the model thinks: only where it is asked to, and less than ``max_tokens``."""
    effort = _read_effort(fields.get("output_config"))
    value = fields.get("thinking", {"type": "disabled"})
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "disabled":
        return _Thinking(ReasoningWish(is_enabled=False, effort=effort))
    if not isinstance(value, dict) or kind not in ("enabled", "adaptive"):
        message = "thinking must be an object of type enabled, adaptive or disabled."
        raise InvalidValue("thinking", message)
    budget = _read_budget(value.get("budget_tokens"), max_tokens) if kind == "enabled" else None
    wish = ReasoningWish(is_enabled=True, effort=effort, max_tokens=budget)
    return _Thinking(wish, _read_display(value.get("display")))


def _read_effort(config: Any) -> str:
    effort = _read_config(config).get("effort")
    if effort is None:
        return ""
    if not isinstance(effort, str) or effort not in _EFFORTS:
        message = f"output_config.effort must be one of {', '.join(_EFFORTS)}."
        raise InvalidValue("output_config.effort", message)
    return EFFORTS[effort]


def _read_budget(budget: Any, max_tokens: int | None) -> int:
    path = "thinking.budget_tokens"
    if type(budget) is not int or budget < 1:
        raise InvalidValue(path, f"{path} must be an integer of at least 1.")
    if max_tokens is not None and budget >= max_tokens:
        raise InvalidValue(path, f"{path} must be less than max_tokens.")
    return int(budget)


def _read_display(display: Any) -> bool:
    if display not in (None, "summarized", "omitted"):
        raise InvalidValue("thinking.display", "thinking.display must be summarized or omitted.")
    return bool(display == "omitted")


def _check_metadata(metadata: Any) -> None:
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        raise InvalidValue("metadata", "metadata must be an object.")
    user = metadata.get("user_id")
    if user is not None and not (isinstance(user, str) and len(user) <= MAX_USER_ID_LENGTH):
        message = f"metadata.user_id must be a string of at most {MAX_USER_ID_LENGTH} characters."
        raise InvalidValue("metadata.user_id", message)
