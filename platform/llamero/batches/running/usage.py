"""What the answers of a batch took, added up."""

import msgspec

FIELDS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "total_tokens")


class _Details(msgspec.Struct):
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class _Usage(msgspec.Struct):
    """Both of OpenAI's spellings: that of chats, and that of responses."""

    prompt_tokens: int = 0
    input_tokens: int = 0
    completion_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    prompt_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None


class _Answer(msgspec.Struct):
    usage: _Usage | None = None


_decoder = msgspec.json.Decoder(_Answer)


def read_usage(body: bytes) -> dict[str, int]:
    """Give what an answer says that it took."""
    found = _decoder.decode(body).usage or _Usage()
    before = found.prompt_tokens_details or found.input_tokens_details or _Details()
    behind = found.completion_tokens_details or found.output_tokens_details or _Details()
    return {
        "input_tokens": found.prompt_tokens + found.input_tokens,
        "cached_tokens": before.cached_tokens,
        "output_tokens": found.completion_tokens + found.output_tokens,
        "reasoning_tokens": behind.reasoning_tokens,
        "total_tokens": found.total_tokens,
    }


def add_usage(total: dict[str, int], more: dict[str, int]) -> None:
    """Add what one answer took to what all took."""
    for name, count in more.items():
        total[name] = total.get(name, 0) + count
