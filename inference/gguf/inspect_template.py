"""Reads a model's chat template from its header, in a process of its own as for all headers.

Run by inference.gguf.child with the descriptor of the first shard; writes one Verdict as JSON.
"""

import sys

import msgspec

from inference.gguf.header import read_header
from inference.gguf.inspect import Files, judge_files
from inference.gguf.values import Header

_TOKENS = "tokenizer.ggml.tokens"


class TemplateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A chat template, empty where the model has none, and the texts it names as variables."""

    chat_template: str = ""
    bos_token: str = ""
    eos_token: str = ""


def read_template(header: Header) -> TemplateFacts:
    """Give what a header says of its template."""
    return TemplateFacts(
        chat_template=header.text("tokenizer.chat_template") or "",
        bos_token=_token(header, "bos"),
        eos_token=_token(header, "eos"),
    )


def _token(header: Header, name: str) -> str:
    """Give the text of a token that the header names by its number; empty where it does not."""
    number = header.integer(f"tokenizer.ggml.{name}_token_id")
    tokens = header.metadata.get(_TOKENS)
    texts = tokens.data if tokens is not None else None
    if number is None or texts is None or not 0 <= number < len(texts):
        return ""
    return bytes(texts[number]).decode(errors="replace")


def main(arguments: list[str]) -> int:
    """Read the template; give the exit status."""

    def judge(files: Files) -> TemplateFacts:
        [(descriptor, size_bytes)] = files
        return read_template(read_header(descriptor, size_bytes))

    return judge_files(arguments, judge)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
