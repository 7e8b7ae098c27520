"""Which format does a turn have? What a template says decides, and what the request wants."""

import secrets
from collections.abc import Mapping
from typing import Any

from inference.text.tool_grammar import ParameterCall, writes_text
from llamero.api.turn.call_styles import CallStyle, find_call_style
from llamero.api.turn.calls import CallableTool
from llamero.api.turn.reasoning_styles import find_reasoning_style
from llamero.api.turn.tools import Tool, ToolUse
from llamero.api.turn.turn_format import TurnFormat
from llamero.api.turn.wishes import ReasoningWish

# The variables by which templates let reasoning be switched, whatever their models call it.
_SWITCHES = ("enable_thinking", "thinking")


def choose_format(template: str, prompt: str, use: ToolUse, wish: ReasoningWish) -> TurnFormat:
    """Give the format of the answers to a prompt that the template made."""
    reasoning = find_reasoning_style(template)
    tools = use.callable_tools
    style = find_call_style(template) if tools else None
    return TurnFormat(
        reasoning=reasoning,
        is_reasoning_open=bool(reasoning and prompt.rstrip().endswith(reasoning.opening)),
        is_reasoning_apart=wish.is_apart,
        call_style=style.name if style else "",
        tools=tuple(_describe(tool, style) for tool in tools) if style else (),
        id_seed=secrets.token_hex(8) if style else "",
    )


def describe_tools(use: ToolUse) -> tuple[dict[str, Any], ...]:
    """Give the definitions for a template; none where no tool may be called."""
    return tuple(tool.describe() for tool in use.tools) if use.callable_tools else ()


def template_variables(wish: ReasoningWish, given: Mapping[str, Any]) -> dict[str, Any]:
    """Give the variables that tell a template how to reason; what the client gives goes first."""
    variables: dict[str, Any] = {}
    if wish.is_enabled is not None:
        variables |= dict.fromkeys(_SWITCHES, wish.is_enabled)
    if wish.effort:
        variables["reasoning_effort"] = wish.effort
    return variables | dict(given)


def _describe(tool: Tool, style: CallStyle) -> CallableTool:
    if not isinstance(style.syntax.form, ParameterCall):
        return CallableTool(name=tool.name)
    properties = tool.parameters.get("properties")
    parts = properties if isinstance(properties, dict) else {}
    texts = tuple(name for name, part in parts.items() if writes_text(part, tool.parameters))
    nullable = tuple(name for name in texts if _allows_null(parts[name]))
    return CallableTool(name=tool.name, texts=texts, nullable_texts=nullable)


def _allows_null(schema: Any) -> bool:
    """Tell whether a schema of texts allows null too."""
    if not isinstance(schema, dict):
        return False
    kinds, values = schema.get("type"), schema.get("enum")
    if schema.get("nullable") is True or kinds == "null":
        return True
    if any(
        isinstance(words, list) and word in words
        for words, word in ((kinds, "null"), (values, None))
    ):
        return True
    options = (schema.get("anyOf"), schema.get("oneOf"))
    return any(_allows_null(one) for list_ in options if isinstance(list_, list) for one in list_)
