"""What the fields of a chat completion say about the model's reasoning."""

from collections.abc import Mapping
from typing import Any

from llamero.api.turn import EFFORTS, ReasoningWish
from llamero.errors import InvalidValue

_FORMATS = {"none": False, "deepseek": True, "auto": True}
_BUDGETS = ("thinking_budget_tokens", "reasoning_budget_tokens", "reasoning_budget")


def read_reasoning_wish(
    fields: Mapping[str, Any], template_kwargs: Mapping[str, Any]
) -> ReasoningWish:
    """Validate the fields; raises LlameroError."""
    style = fields.get("reasoning_format", "auto")
    if style not in _FORMATS:
        raise _must_be("reasoning_format", f"one of {', '.join(_FORMATS)}")
    effort = fields.get("reasoning_effort", "")
    if effort and effort not in EFFORTS:
        raise _must_be("reasoning_effort", f"one of {', '.join(EFFORTS)}")
    is_enabled = template_kwargs.get("enable_thinking")
    if is_enabled is not None and type(is_enabled) is not bool:
        raise _must_be("chat_template_kwargs.enable_thinking", "true or false")
    budget = next((fields[name] for name in _BUDGETS if name in fields), -1)
    if is_enabled is None and effort:
        is_enabled = effort != "none"
    if budget == 0:
        is_enabled = False
    return ReasoningWish(
        is_apart=_FORMATS[style],
        is_enabled=is_enabled,
        effort=EFFORTS.get(effort, ""),
        max_tokens=budget if budget >= 0 else None,
    )


def _must_be(param: str, what: str) -> InvalidValue:
    return InvalidValue(param, f"{param} must be {what}.")
