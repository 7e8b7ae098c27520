"""Questions about text, each with its own kind of answer."""

from inference.protocol.text import (
    Detokenize,
    Detokenized,
    JoinPairs,
    RenderChat,
    Rendered,
    Tokenize,
    Tokenized,
)
from llamero import dispatch


async def ask_tokens(deployment: str, question: Tokenize) -> Tokenized:
    """Turn texts into token ids."""
    answer = await dispatch.get_dispatcher().ask(deployment, question)
    assert isinstance(answer, Tokenized)
    return answer


async def ask_pairs(deployment: str, question: JoinPairs) -> tuple[tuple[int, ...], ...]:
    """Join a query with documents."""
    answer = await dispatch.get_dispatcher().ask(deployment, question)
    assert isinstance(answer, Tokenized)
    return answer.tokens


async def ask_text(deployment: str, question: Detokenize) -> Detokenized:
    """Turn token ids into text."""
    answer = await dispatch.get_dispatcher().ask(deployment, question)
    assert isinstance(answer, Detokenized)
    return answer


async def ask_prompt(deployment: str, question: RenderChat) -> Rendered:
    """Turn messages into a prompt."""
    answer = await dispatch.get_dispatcher().ask(deployment, question)
    assert isinstance(answer, Rendered)
    return answer
