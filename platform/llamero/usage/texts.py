"""Prompts and answers as they are kept: any text there is, compressed."""

import zlib


def pack_text(text: str) -> bytes:
    """Give the form in which a text is kept; databases refuse some characters, such as NUL."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def unpack_text(packed: bytes) -> str:
    """Give a kept text."""
    return zlib.decompress(packed).decode("utf-8", "surrogatepass")
