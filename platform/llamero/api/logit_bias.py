"""Biases on tokens: for ids at once, for texts when the model has told which tokens they are."""

import re
from dataclasses import dataclass
from typing import Any

from inference.protocol.sampling import SamplingParams
from inference.protocol.text import Tokenize
from llamero.api.questions import ask_tokens
from llamero.errors import InvalidValue

MAX_BIASES = 300
MAX_TEXT_CHARS = 4096
_MAX_BIAS = 100
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)

IdBiases = tuple[tuple[int, float | None], ...]
TextBiases = tuple[tuple[str, float | None], ...]


@dataclass(frozen=True, slots=True)
class Biases:
    """What a request adds to the logits of tokens, and of all tokens of texts."""

    ids: IdBiases = ()
    texts: TextBiases = ()


def read_biases(value: Any, *, has_text_keys: bool) -> Biases:
    """Read ``{"id": bias}`` or ``[[id or text, bias], …]``; a bias of false bans.

    llama-server's objects may have texts as keys. OpenAI's have ids only: there a key that is no
    number is a mistake.
    """
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list):
        raise _bad_bias("must be an object of token ids and numbers")
    if len(pairs) > MAX_BIASES:
        raise _bad_bias(f"must have at most {MAX_BIASES} entries")
    ids, texts = [], []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise _bad_bias("must hold pairs of a token and a number")
        token = _read_key(pair[0], has_text_keys) if isinstance(value, dict) else pair[0]
        bias = _read_bias(pair[1])
        if isinstance(token, str) and token:
            texts.append((token, bias))
        elif type(token) is int and 0 <= token < 2**31:
            ids.append((token, bias))
        else:
            raise _bad_bias("must name tokens by their ids, or by texts that are not empty")
    if sum(len(text) for text, _ in texts) > MAX_TEXT_CHARS:
        raise _bad_bias(f"must name tokens by at most {MAX_TEXT_CHARS} characters together")
    return Biases(tuple(ids), tuple(texts))


async def find_tokens(deployment: str, texts: TextBiases) -> IdBiases:
    """Give the biases of all tokens of which texts are made."""
    if not texts:
        return ()
    question = Tokenize(texts=tuple(text for text, _ in texts), parse_special=False)
    found = (await ask_tokens(deployment, question, "logit_bias")).tokens
    return tuple(
        (token, bias) for (_, bias), tokens in zip(texts, found, strict=True) for token in tokens
    )


def check_biases(sampling: SamplingParams, num_vocab: int) -> None:
    """Refuse biases for tokens the model does not have."""
    for token, _ in sampling.logit_bias:
        if token >= num_vocab:
            raise _bad_bias(f"names token {token}: the model has none (0 to {num_vocab - 1})")


def _read_key(key: str, has_text_keys: bool) -> int | str:
    if _NUMBER.fullmatch(key):
        return int(key)
    if not has_text_keys:
        raise _bad_bias("must name tokens by their ids")
    return key


def _read_bias(bias: Any) -> float | None:
    if bias is False:
        return None
    if type(bias) not in (int, float) or not -_MAX_BIAS <= bias <= _MAX_BIAS:
        raise _bad_bias(f"must have numbers between -{_MAX_BIAS} and {_MAX_BIAS}, or false")
    return float(bias)


def _bad_bias(problem: str) -> InvalidValue:
    return InvalidValue("logit_bias", f"logit_bias {problem}.")
