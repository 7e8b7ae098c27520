"""Questions about text, each with its own kind of answer."""

from inference.protocol.errors import EngineError, ErrorCode
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
from llamero.errors import InvalidValue


async def ask_tokens(deployment: str, question: Tokenize, param: str) -> Tokenized:
    """Turn texts into token ids; ``param`` is the field that they come from."""
    try:
        answer = await dispatch.get_dispatcher().ask(deployment, question)
    except EngineError as error:
        if error.code is not ErrorCode.INVALID_PROMPT:
            raise
        raise InvalidValue(param, error.message, error.code.value) from None
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
