"""A chat completion request: from the JSON a client sends to what is generated."""

from collections.abc import Mapping
from typing import Any

from llamero.api.chat import ChatRequest
from llamero.api.defaults import NO_DEFAULTS, RequestDefaults, with_defaults
from llamero.api.fields import AnyValue, StrictBoolean, StrictInteger, StrictString, validate
from llamero.api.lengths import LEAST_LENGTH, read_limit
from llamero.api.messages import read_messages
from llamero.api.openai.continuation import read_continuation
from llamero.api.openai.reasoning import read_reasoning_wish
from llamero.api.openai.settings import (
    OpenAISerializer,
    read_include_usage,
    read_prompt_logprobs,
    read_settings,
    with_native_names,
)
from llamero.api.openai.tools import read_tool_use
from llamero.api.turn import CallMode, ToolUse
from llamero.errors import InvalidValue

# What a template is given by the server; a client may not speak over it.
_RESERVED_VARIABLES = frozenset(
    {
        "messages",
        "tools",
        "chat_template",
        "add_generation_prompt",
        "bos_token",
        "eos_token",
        "raise_exception",
        "strftime_now",
    }
)


class ChatSerializer(OpenAISerializer):
    """The fields of POST /v1/chat/completions."""

    messages = AnyValue()
    n_predict = StrictInteger(LEAST_LENGTH, required=False)
    max_tokens = StrictInteger(LEAST_LENGTH, required=False)
    max_completion_tokens = StrictInteger(LEAST_LENGTH, required=False)
    logprobs = StrictBoolean(required=False)
    top_logprobs = StrictInteger(0, 20, required=False)
    tools = AnyValue(required=False)
    tool_choice = AnyValue(required=False)
    parallel_tool_calls = StrictBoolean(required=False)
    functions = AnyValue(required=False)
    function_call = AnyValue(required=False)
    reasoning_format = StrictString(required=False)
    reasoning_effort = StrictString(required=False)
    thinking_budget_tokens = StrictInteger(-1, required=False)
    reasoning_budget_tokens = StrictInteger(-1, required=False)
    reasoning_budget = StrictInteger(-1, required=False)
    chat_template_kwargs = AnyValue(required=False)
    add_generation_prompt = StrictBoolean(required=False)
    continue_final_message = AnyValue(required=False)


def read_chat_request(
    body: Mapping[str, Any],
    defaults: RequestDefaults = NO_DEFAULTS,
    *,
    goes_on_with_answers: bool = False,
) -> ChatRequest:
    """Validate a body; raises ValidationError or LlameroError.

    ``defaults`` are those of the deployment that answers.
    ``goes_on_with_answers``: a last message by the assistant is the beginning of the answer.
    """
    fields = with_native_names(with_defaults(validate(ChatSerializer, body), defaults))
    include_usage = read_include_usage(fields)
    template_kwargs = _read_template_kwargs(fields.get("chat_template_kwargs"))
    tools = read_tool_use(fields)
    _refuse_two_grammars(fields, tools)
    all_messages = read_messages(fields["messages"])
    messages, prefill, begins_turn = read_continuation(
        fields, all_messages, is_usual=goes_on_with_answers
    )
    return ChatRequest(
        messages=messages,
        prefill=prefill,
        begins_turn=begins_turn,
        settings=read_settings(
            fields,
            max_tokens=read_limit(fields),
            num_logprobs=_read_logprobs(fields),
            num_prompt_logprobs=read_prompt_logprobs(fields),
        ),
        include_usage=include_usage,
        template_kwargs=template_kwargs,
        tools=tools,
        is_legacy=bool(fields.get("functions")),
        reasoning=read_reasoning_wish(fields, template_kwargs),
    )


def _read_logprobs(fields: dict[str, Any]) -> int | None:
    if fields.get("logprobs"):
        return int(fields.get("top_logprobs", 0))
    if "top_logprobs" in fields:
        raise InvalidValue("top_logprobs", "top_logprobs is only allowed with logprobs: true.")
    if "logprobs" not in fields and fields.get("n_probs"):
        return int(fields["n_probs"])
    return None


def _refuse_two_grammars(fields: dict[str, Any], tools: ToolUse) -> None:
    """Calls have a grammar of their own. An answer beside them may have a form, but not any."""
    if tools.mode is CallMode.NONE:
        return
    for name in ("grammar", "guided_grammar"):
        if fields.get(name):
            raise InvalidValue(name, f"{name} is not possible with tools: these have their own.")


def _read_template_kwargs(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidValue("chat_template_kwargs", "chat_template_kwargs must be an object.")
    for name in value:
        if name in _RESERVED_VARIABLES:
            path = f"chat_template_kwargs.{name}"
            raise InvalidValue(path, f"{path} may not be set by a request.")
    return value
