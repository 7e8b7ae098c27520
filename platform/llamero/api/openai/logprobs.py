"""Log-probabilities in OpenAI's two shapes."""

from collections.abc import Iterable, Sequence
from typing import Any

from inference.protocol.events import Candidate, TokenLogprob

# JSON has no minus infinity; OpenAI sends this.
_LOWEST = -9999.0


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


class LegacyLogprobs:
    """Builds the ``logprobs`` of a text completion, piece by piece; offsets count characters."""

    def __init__(self, first_offset: int = 0) -> None:
        self._offset = first_offset

    def take(self, entries: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Give the object for the next tokens."""
        offsets = []
        for entry in entries:
            offsets.append(self._offset)
            self._offset += len(_raw(entry.chosen).decode(errors="ignore"))
        return {
            "tokens": [_legacy_text(entry.chosen) for entry in entries],
            "token_logprobs": [finite(entry.chosen.logprob) for entry in entries],
            "top_logprobs": [
                {_legacy_text(one): finite(one.logprob) for one in (*entry.top, entry.chosen)}
                for entry in entries
            ],
            "text_offset": offsets,
        }


def finite(logprob: float) -> float:
    """Give a number that JSON can hold (NaN included)."""
    return logprob if logprob > _LOWEST else _LOWEST


def token_text(candidate: Candidate) -> str:
    """Give the text of a token; bytes that are no whole character are replaced."""
    return _raw(candidate).decode(errors="replace")


def token_bytes(candidate: Candidate) -> list[int]:
    """Give the bytes of a token."""
    return list(_raw(candidate))


def _token_object(candidate: Candidate) -> dict[str, Any]:
    return {
        "token": token_text(candidate),
        "logprob": finite(candidate.logprob),
        "bytes": token_bytes(candidate),
    }


def _legacy_text(candidate: Candidate) -> str:
    """Name a token by its text, or as OpenAI does by its bytes: keys must not collide."""
    raw = _raw(candidate)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)


def _raw(candidate: Candidate) -> bytes:
    return candidate.bytes_latin1.encode("latin-1")
