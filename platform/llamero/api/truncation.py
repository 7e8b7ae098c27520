"""What becomes of an input that is too long? It is cut where the client asks, else refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference.protocol.replicas import ModelFacts
from llamero.api.fields import RequestSerializer, StrictBoolean, StrictInteger, StrictString
from llamero.api.prompts import PromptText
from llamero.errors import InvalidValue, LlameroError

Tokens = tuple[int, ...]


class TruncationFields(RequestSerializer):
    """TEI's fields for inputs that are too long, and vLLM's."""

    truncate = StrictBoolean(required=False)
    truncation_direction = StrictString(choices=("Right", "Left"), required=False)
    truncate_prompt_tokens = StrictInteger(-1, required=False)


@dataclass(frozen=True, slots=True)
class Truncation:
    """Up to how many tokens inputs are cut: None not at all, -1 to what the model takes."""

    limit: int | None = None
    keeps_end: bool = False

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "Truncation":
        """Read validated fields."""
        limit = fields.get("truncate_prompt_tokens", -1 if fields.get("truncate") else None)
        if limit == 0:
            raise InvalidValue(
                "truncate_prompt_tokens", "truncate_prompt_tokens must be -1 or at least 1."
            )
        return cls(limit, keeps_end=fields.get("truncation_direction") == "Left")

    def tokens_kept(self, facts: ModelFacts) -> int | None:
        """Give the most tokens an input keeps; None where none is cut."""
        if self.limit is None or self.limit < 0:
            return facts.context_length if self.limit else None
        least = facts.num_prefix_tokens + facts.num_suffix_tokens + 1
        if not least <= self.limit <= facts.context_length:
            raise InvalidValue(
                "truncate_prompt_tokens",
                f"truncate_prompt_tokens must be between {least} and {facts.context_length} here.",
            )
        return self.limit

    def fit(self, source: PromptText, tokens: Tokens, param: str, facts: ModelFacts) -> Tokens:
        """Cut an input, or refuse it; special tokens around a text stay."""
        limit = self.tokens_kept(facts)
        if limit is not None and len(tokens) > limit:
            num_prefix = facts.num_prefix_tokens if isinstance(source.parts[0], str) else 0
            num_suffix = facts.num_suffix_tokens if source.is_text else 0
            return cut(tokens, limit, num_prefix, num_suffix, keeps_end=self.keeps_end)
        if len(tokens) > facts.context_length:
            raise too_long(source.path, param, len(tokens), facts.context_length)
        return tokens


def cut(tokens: Tokens, limit: int, num_prefix: int, num_suffix: int, *, keeps_end: bool) -> Tokens:
    """Keep the first tokens between prefix and suffix, or the last."""
    text = tokens[num_prefix : len(tokens) - num_suffix]
    room = limit - num_prefix - num_suffix
    kept = text[len(text) - room :] if keeps_end else text[:room]
    return (*tokens[:num_prefix], *kept, *tokens[len(tokens) - num_suffix :])


def too_long(path: str, param: str, num_tokens: int, limit: int) -> LlameroError:
    """Say which input is too long, and by how much."""
    return LlameroError(
        400,
        "context_length_exceeded",
        f"{path} has {num_tokens} tokens, which is too large: the model takes at most {limit}.",
        param=param,
        extra={"n_prompt_tokens": num_tokens, "n_ctx": limit},
    )
