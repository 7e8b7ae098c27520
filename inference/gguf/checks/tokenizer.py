"""Does the vocabulary hold together, so that no index of it can point outside?"""

import re

from inference.gguf.values import INTEGER_TYPES, Header, Value, ValueType
from inference.gguf.verdict import GgufRejected

MAX_VOCAB = 2_000_000
MAX_TOKEN_BYTES = 1024
BYTE_TYPE = 6
_KNOWN_TOKEN_TYPES = frozenset(range(BYTE_TYPE + 1))
_BYTE_TOKEN = re.compile(rb"<0x[0-9A-Fa-f]{2}>\Z")
_LOOKS_LIKE_BYTE_TOKEN = re.compile(rb"<0x..>\Z", re.DOTALL)
_ABSENT_IDS = (-1, 2**32 - 1)
# Some real files hold whole-numbered scores as INT32; both are read four bytes at a time.
_SCORE_TYPES = frozenset({ValueType.FLOAT32, ValueType.INT32})
_TOKEN_TYPE_TYPES = frozenset({ValueType.INT32, ValueType.UINT32})
_CHARSMAP_TYPES = frozenset({ValueType.INT8, ValueType.UINT8})


def check_tokenizer(header: Header) -> int:
    """Check the tokenizer's arrays and ids; give the size of the vocabulary."""
    if header.text("tokenizer.ggml.model") in (None, "none", "no_vocab"):
        raise GgufRejected("tokenizer", "The file has no tokenizer, so it cannot be served.")
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    if tokens is None or tokens.element_type != ValueType.STRING:
        at = tokens.offset if tokens else None
        raise GgufRejected("tokenizer_array_type", "tokenizer.ggml.tokens is no list of texts.", at)
    if not 1 <= tokens.count <= MAX_VOCAB:
        raise GgufRejected(
            "tokenizer_array_len", "The vocabulary is empty or too large.", tokens.offset
        )
    _check_array(header, "tokenizer.ggml.scores", _SCORE_TYPES, tokens.count)
    types = _check_array(header, "tokenizer.ggml.token_type", _TOKEN_TYPE_TYPES, tokens.count)
    _check_array(header, "tokenizer.ggml.merges", frozenset({ValueType.STRING}), None)
    _check_array(header, "tokenizer.ggml.suppress_tokens", _TOKEN_TYPE_TYPES, None)
    charsmap = _check_array(header, "tokenizer.ggml.precompiled_charsmap", _CHARSMAP_TYPES, None)
    if charsmap is not None and charsmap.count < 4:
        raise _wrong_length("tokenizer.ggml.precompiled_charsmap", charsmap)
    _check_tokens(tokens, types)
    _check_ids(header, tokens.count)
    return tokens.count


def _wrong_length(key: str, value: Value) -> GgufRejected:
    reason = f"{key} has {value.count} elements, which does not fit the vocabulary."
    return GgufRejected("tokenizer_array_len", reason, value.offset)


def _check_array(
    header: Header, key: str, allowed: frozenset[ValueType], count: int | None
) -> Value | None:
    """Check an array that the loader casts without looking at its declared type."""
    value = header.metadata.get(key)
    if value is None:
        return None
    if value.element_type not in allowed:
        raise GgufRejected("tokenizer_array_type", f"{key} has the wrong type.", value.offset)
    if count is not None and value.count != count:
        raise _wrong_length(key, value)
    return value


def _check_tokens(tokens: Value, types: Value | None) -> None:
    kinds = types.data if types is not None else None
    if types is not None and not set(types.data) <= _KNOWN_TOKEN_TYPES:
        raise GgufRejected("tokenizer_token", "A token's type is not 0 to 6.", types.offset)
    for index, token in enumerate(tokens.data):
        if len(token) > MAX_TOKEN_BYTES:
            raise _bad_token(tokens, index, f"is longer than {MAX_TOKEN_BYTES} bytes")
        is_byte = kinds is not None and kinds[index] == BYTE_TYPE
        if (is_byte or _LOOKS_LIKE_BYTE_TOKEN.match(token)) and not _BYTE_TOKEN.match(token):
            raise _bad_token(tokens, index, "should name a byte (<0x00> to <0xFF>) and does not")


def _bad_token(tokens: Value, index: int, why: str) -> GgufRejected:
    return GgufRejected("tokenizer_token", f"Token {index} {why}.", tokens.offset)


def _check_ids(header: Header, num_vocab: int) -> None:
    """Check every id of a special token; -1 stands for “none”."""
    for key, value in header.metadata.items():
        if not key.startswith("tokenizer.ggml.") or not key.endswith(("_token_id", "_token_ids")):
            continue
        is_array = value.type == ValueType.ARRAY
        kind = value.element_type if is_array else value.type
        ids = value.data if is_array else [value.data]
        is_integer = kind in INTEGER_TYPES
        if not is_integer or any(not _is_id(token, num_vocab) for token in ids):
            reason = f"{key} points outside the vocabulary of {num_vocab}."
            raise GgufRejected("token_id_range", reason, value.offset)
    suppressed = header.metadata.get("tokenizer.ggml.suppress_tokens")
    if suppressed is not None and any(not 0 <= token < num_vocab for token in suppressed.data):
        raise GgufRejected(
            "token_id_range", "A suppressed token is outside the vocabulary.", suppressed.offset
        )


def _is_id(token: int, num_vocab: int) -> bool:
    return 0 <= token < num_vocab or token in _ABSENT_IDS
