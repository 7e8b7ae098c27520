"""What a request wants of a model's reasoning."""

from dataclasses import dataclass

EFFORTS = {
    "none": "",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
"""How far to reason, in the words of clients, and in those of templates, who know three at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningWish:
    """Whether and how far a model reasons, and whether that is told apart from the answer.

    ``is_enabled`` None leaves it to the model's template, as an empty ``effort`` does.
    ``max_tokens`` None: as long as it likes.
    """

    is_apart: bool = True
    is_enabled: bool | None = None
    effort: str = ""
    max_tokens: int | None = None


AS_THE_MODEL_LIKES = ReasoningWish()
