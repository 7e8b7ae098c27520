"""Questions about text that need a model's vocabulary but no slot, and their answers."""

from typing import Any

import msgspec


class Tokenize(msgspec.Struct, frozen=True, kw_only=True, tag="tokenize"):
    """Turn each text into token ids. ``with_pieces`` adds the bytes of each token."""

    texts: tuple[str, ...]
    add_special: bool = False
    parse_special: bool = True
    with_pieces: bool = False


class Detokenize(msgspec.Struct, frozen=True, kw_only=True, tag="detokenize"):
    """Turn token ids into text; ids outside the vocabulary are refused by position."""

    tokens: tuple[int, ...]


class RenderChat(msgspec.Struct, frozen=True, kw_only=True, tag="render_chat"):
    """Render messages through the model's chat template, and tokenize the result.

    Control tokens come from the template only: the same marker inside message text is plain text.
    ``prefill`` is the beginning of the answer, which the model is to go on with.
    ``no_reasoning`` are the marks around reasoning, which ends at once where a prompt opens it.
    """

    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()
    add_generation_prompt: bool = True
    template_kwargs: dict[str, Any] = {}
    prefill: str = ""
    no_reasoning: tuple[str, str] | None = None


class JoinPairs(msgspec.Struct, frozen=True, kw_only=True, tag="join_pairs"):
    """Join a query with each document as the model was trained to score them.

    ``max_tokens`` above 0 cuts the ends of documents off where a pair would be longer. Control
    tokens come from the layout only.
    """

    query: str
    documents: tuple[str, ...]
    max_tokens: int = 0


class PairLayout(msgspec.Struct, frozen=True, kw_only=True):
    """What stands around a query and a document: a template that names both, or token ids."""

    template: str = ""
    before: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


TextQuestion = Tokenize | Detokenize | RenderChat | JoinPairs


class TextRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question for any ready replica of a deployment, answered over the gateway's channel."""

    id: str
    gateway: str
    deadline: float
    question: TextQuestion


class Tokenized(msgspec.Struct, frozen=True, kw_only=True, tag="tokenized"):
    """Token ids per text or pair; ``pieces`` (each token's bytes as latin-1) when asked for."""

    tokens: tuple[tuple[int, ...], ...]
    pieces: tuple[tuple[str, ...], ...] = ()


class Detokenized(msgspec.Struct, frozen=True, kw_only=True, tag="detokenized"):
    """Text of the ids; bytes that are no UTF-8 are replaced."""

    text: str


class Rendered(msgspec.Struct, frozen=True, kw_only=True, tag="rendered"):
    """The prompt as text and as token ids."""

    prompt: str
    tokens: tuple[int, ...]


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The question cannot be answered; ``param`` names the part of it that is wrong, if known."""

    code: str
    message: str
    param: str | None = None


TextAnswer = Tokenized | Detokenized | Rendered | Refused


class TextReply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to the request of the same id."""

    id: str
    answer: TextAnswer
