"""How families of models write their reasoning: one row each, found by what their templates say."""

from functools import lru_cache

import msgspec


class ReasoningStyle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reasoning stands between two marks, before the answer.

    ``before_answer`` stands before an answer that must have a form; all of ``dropped`` are marks
    around answers and no words of them. Where ``has_channels``, each part of a turn has a header.
    """

    opening: str
    closing: str
    before_answer: str = ""
    dropped: tuple[str, ...] = ()
    has_channels: bool = False

    @property
    def ending(self) -> str:
        """What ends reasoning that has gone on for long enough."""
        return self.closing if self.has_channels else f"\n{self.closing}\n\n"

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks that have to be told, also where they are control tokens."""
        if self.has_channels:
            return ("<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|constrain|>")
        return (self.opening, self.closing)


_STYLES = (
    ReasoningStyle(
        opening="<|channel|>analysis<|message|>",
        closing="<|end|><|start|>assistant",
        before_answer="<|channel|>final<|message|>",
        has_channels=True,
    ),
    ReasoningStyle(opening="<think>", closing="</think>", dropped=("<response>", "</response>")),
    ReasoningStyle(opening="<think>", closing="</think>", dropped=("<answer>", "</answer>")),
    ReasoningStyle(opening="Here is my thought process:", closing="Here is my response:"),
    ReasoningStyle(opening="[THINK]", closing="[/THINK]"),
    ReasoningStyle(opening="<|START_THINKING|>", closing="<|END_THINKING|>"),
    ReasoningStyle(opening="<seed:think>", closing="</seed:think>"),
    ReasoningStyle(opening="<|inner_prefix|>", closing="<|inner_suffix|>"),
    ReasoningStyle(
        opening="<|begin_of_thought|>",
        closing="<|end_of_thought|>",
        dropped=("<|begin_of_solution|>", "<|end_of_solution|>"),
    ),
    ReasoningStyle(opening="◁think▷", closing="◁/think▷"),
    ReasoningStyle(opening="<thought>", closing="</thought>"),
    ReasoningStyle(opening="<think>", closing="</think>"),
)


@lru_cache(64)
def find_reasoning_style(template: str) -> ReasoningStyle | None:
    """Give the style of a template's reasoning; None where it knows of none."""
    return next((style for style in _STYLES if _is_of(template, style)), None)


def _is_of(template: str, style: ReasoningStyle) -> bool:
    if style.has_channels:
        return "<|channel|>" in template and "<|message|>" in template
    return style.closing in template and all(mark in template for mark in style.dropped)
