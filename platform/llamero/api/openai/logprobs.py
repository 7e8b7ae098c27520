"""Log-probabilities in OpenAI's two shapes."""

from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Iterable, Sequence
from typing import Any

from inference.protocol.events import LEAST_LOGPROB, Candidate, TokenLogprob


def chat_logprobs(entries: Iterable[TokenLogprob]) -> dict[str, Any]:
    """Give the ``logprobs`` of a chat choice or delta."""
    return {
        "content": [
            _token_object(entry.chosen)
            | {"top_logprobs": [_token_object(top) for top in entry.top]}
            for entry in entries
        ],
        "refusal": None,
    }


def prompt_logprobs(entries: Sequence[TokenLogprob]) -> list[dict[str, Any] | None]:
    """Give vLLM's ``prompt_logprobs``: nothing for the first token, then what might have stood."""
    return [None, *(_ranked(entry) for entry in entries[1:])]


class LegacyLogprobs:
    """Builds the ``logprobs`` of a text completion, piece by piece; offsets count characters.

    A character belongs to the token that completes it.
    """

    def __init__(self) -> None:
        self._num_chars = 0
        self._decoder = _make_decoder()

    def echo(self, entries: Sequence[TokenLogprob], text: str, num_top: int) -> dict[str, Any]:
        """Give the object for a prompt that is repeated; nothing foretells its first token."""
        offsets = _place(entries, text)
        self._num_chars += len(text)
        document = _legacy_object(entries, num_top, offsets)
        for name in ("token_logprobs", "top_logprobs"):
            document[name][:1] = [None]
        return document

    def take(self, entries: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Give the object for the next tokens."""
        offsets = []
        for entry in entries:
            offsets.append(self._num_chars)
            self._num_chars += len(self._decoder.decode(_raw(entry.chosen)))
        return _legacy_object(entries, None, offsets)


def join_legacy(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Put two objects of consecutive tokens together."""
    return {name: values + other[name] for name, values in one.items()}


def finite(logprob: float) -> float:
    """Give a number that JSON can hold (NaN included)."""
    return logprob if logprob > LEAST_LOGPROB else LEAST_LOGPROB


def token_text(candidate: Candidate) -> str:
    """Give the text of a token; bytes that are no whole character are replaced."""
    return _raw(candidate).decode(errors="replace")


def token_bytes(candidate: Candidate) -> list[int]:
    """Give the bytes of a token."""
    return list(_raw(candidate))


def _token_object(candidate: Candidate) -> dict[str, Any]:
    """Describe a token as OpenAI does; the id is llama-server's."""
    return {
        "id": candidate.id,
        "token": token_text(candidate),
        "logprob": finite(candidate.logprob),
        "bytes": token_bytes(candidate),
    }


def _ranked(entry: TokenLogprob) -> dict[str, Any]:
    """Describe a prompt token and its alternatives by id; the rank is known among those only."""
    ranks = {one.id: rank for rank, one in enumerate(entry.top, start=1)}
    return {
        str(one.id): {
            "logprob": finite(one.logprob),
            "rank": ranks.get(one.id),
            "decoded_token": token_text(one),
        }
        for one in (entry.chosen, *entry.top)
    }


def _legacy_object(
    entries: Sequence[TokenLogprob], num_top: int | None, offsets: list[int]
) -> dict[str, Any]:
    return {
        "tokens": [_legacy_text(entry.chosen) for entry in entries],
        "token_logprobs": [finite(entry.chosen.logprob) for entry in entries],
        "top_logprobs": [_legacy_top(entry, num_top) for entry in entries],
        "text_offset": offsets,
    }


def _legacy_top(entry: TokenLogprob, num_top: int | None) -> dict[str, float]:
    """Name the best tokens, and the chosen one as elsewhere; of one name the likeliest counts."""
    chosen, named = entry.chosen, dict[str, float]()
    for one in entry.top[:num_top]:
        named.setdefault(_legacy_text(chosen if one.id == chosen.id else one), finite(one.logprob))
    named[_legacy_text(chosen)] = finite(chosen.logprob)
    return named


def _place(entries: Sequence[TokenLogprob], text: str) -> list[int]:
    """Tell at which character of the text each of its tokens begins.

    A start-of-text token, or the blank that some models put before a text, is not in the text.
    Bytes of tokens that are no characters are replaced in the text too.
    """
    num_chars = 0
    decoder = _make_decoder()
    offsets = []
    for entry in entries:
        offsets.append(num_chars)
        spelling = decoder.decode(_raw(entry.chosen))
        if not text.startswith(spelling, num_chars):
            spelling = spelling.removeprefix(" ")
        if text.startswith(spelling, num_chars):
            num_chars += len(spelling)
    return offsets


def _legacy_text(candidate: Candidate) -> str:
    """Name a token by its text, or as OpenAI does by its bytes: keys must not collide."""
    raw = _raw(candidate)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)


def _make_decoder() -> IncrementalDecoder:
    return getincrementaldecoder("utf-8")("replace")


def _raw(candidate: Candidate) -> bytes:
    return candidate.bytes_latin1.encode("latin-1")
