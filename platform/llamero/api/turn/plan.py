"""What a turn will be: the template's ways, and what the request wants of them."""

import secrets
from dataclasses import dataclass
from typing import Any

import msgspec

from inference.protocol.sampling import ReasoningLimit, SamplingParams
from inference.text.tool_grammar import ParameterCall, writes_text
from llamero.api.turn.call_styles import CallStyle, find_call_style
from llamero.api.turn.calls import CallableTool
from llamero.api.turn.constraint import constrain
from llamero.api.turn.history import Message, settle_history
from llamero.api.turn.reasoning_styles import ReasoningStyle, find_reasoning_style
from llamero.api.turn.tools import CallMode, Tool, ToolUse
from llamero.api.turn.turn_format import TurnFormat
from llamero.api.turn.wishes import ReasoningWish

# The variables by which templates let reasoning be switched, whatever their models call it.
_SWITCHES = ("enable_thinking", "thinking")


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """How a request's prompt is made, and its answers are constrained and read."""

    template: str
    tools: ToolUse
    wish: ReasoningWish
    reasoning: ReasoningStyle | None
    style: CallStyle

    @property
    def definitions(self) -> tuple[dict[str, Any], ...]:
        """The tools as templates are given them; none where none may be called."""
        if not self.tools.callable_tools:
            return ()
        return tuple(tool.describe() for tool in self.tools.tools)

    @property
    def variables(self) -> dict[str, Any]:
        """What tells the template how to reason."""
        wish = self.wish
        variables: dict[str, Any] = {"reasoning_effort": wish.effort} if wish.effort else {}
        if wish.is_enabled is not None:
            variables |= dict.fromkeys(_SWITCHES, wish.is_enabled)
        return variables

    def closed_reasoning(self, *, has_prefill: bool = False) -> tuple[str, str] | None:
        """Give the marks of reasoning that must not be, even if the template opens it.

        An answer that has begun has its reasoning behind it.
        """
        if self.reasoning is None or (self.wish.is_enabled is not False and not has_prefill):
            return None
        return self.reasoning.opening, self.reasoning.closing

    def settle_history(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Give the messages as the template takes them."""
        has_tools = bool(self.tools.callable_tools)
        return settle_history(
            messages, self.template, self.reasoning, self.style, has_tools=has_tools
        )

    def turn_after(self, prompt: str) -> TurnFormat:
        """Give the format of the answers to a prompt."""
        tools, reasoning = self.tools.callable_tools, self.reasoning
        return TurnFormat(
            reasoning=reasoning,
            is_reasoning_open=bool(reasoning and prompt.rstrip().endswith(reasoning.opening)),
            is_reasoning_apart=self.wish.is_apart,
            call_style=self.style.name if tools else "",
            tools=tuple(_describe(tool, self.style) for tool in tools),
            must_call=self.tools.mode is CallMode.REQUIRED,
            id_seed=secrets.token_hex(8) if tools else "",
        )

    def constrain(
        self, sampling: SamplingParams, turn: TurnFormat, *, has_prefill: bool
    ) -> SamplingParams:
        """Give the sampling parameters with what the turn adds; may take a second or two."""
        may_reason = self.wish.is_enabled is not False and not has_prefill
        sampling = constrain(sampling, turn, self.tools, may_reason=may_reason)
        style, max_tokens = self.reasoning, self.wish.max_tokens
        if style is None or max_tokens is None:
            return sampling
        limit = ReasoningLimit(
            opening=style.opening,
            closing=style.closing,
            ending=style.ending,
            max_tokens=max_tokens,
            is_open=turn.is_reasoning_open,
        )
        return msgspec.structs.replace(sampling, reasoning_limit=limit)


def plan_turn(template: str, tools: ToolUse, wish: ReasoningWish) -> TurnPlan:
    """Find what the template says of its model's ways."""
    reasoning, style = find_reasoning_style(template), find_call_style(template)
    return TurnPlan(template, tools, wish, reasoning, style)


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
    if isinstance(kinds, list) and "null" in kinds:
        return True
    if isinstance(values, list) and None in values:
        return True
    options = (schema.get("anyOf"), schema.get("oneOf"))
    return any(_allows_null(one) for many in options if isinstance(many, list) for one in many)
