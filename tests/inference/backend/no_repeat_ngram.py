"""A sampler plug-in: no run of a few tokens comes twice in a text."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from inference.backend.base import Row
from inference.backend.plugins import Vocabulary


def no_repeat_ngram(
    params: Mapping[str, object], vocabulary: Vocabulary
) -> Callable[[Row, Sequence[int]], None]:
    """Ban, after each run of ``size`` - 1 tokens, what followed it before."""
    size = params.get("size", 3)
    if not isinstance(size, int) or not 2 <= size <= 16:
        raise ValueError("size must be an integer between 2 and 16.")
    followers: dict[tuple[int, ...], list[int]] = {}
    num_seen = size - 1

    def edit(logits: Row, tokens: Sequence[int]) -> None:
        nonlocal num_seen
        for end in range(num_seen, len(tokens)):
            followers.setdefault(tuple(tokens[end - size + 1 : end]), []).append(tokens[end])
        num_seen = max(num_seen, len(tokens))
        banned = followers.get(tuple(tokens[len(tokens) - size + 1 :]), [])
        logits[banned] = -np.inf

    return edit


def failing(
    params: Mapping[str, object], vocabulary: Vocabulary
) -> Callable[[Row, Sequence[int]], None]:
    """Fail at the third token, or leave what is no number."""

    def edit(logits: Row, tokens: Sequence[int]) -> None:
        if params.get("value") is not None:
            logits[5] = float(str(params["value"]))
        elif len(tokens) >= 5:
            raise KeyError("secret")

    return edit


NOT_CALLABLE = 5
