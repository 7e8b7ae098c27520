"""How contents are kept in the database: JSON, compressed, typed when they are read."""

import zlib
from typing import Any, TypeVar

import msgspec

Content = TypeVar("Content")


def pack(content: Any) -> bytes:
    """Give the bytes to store."""
    return zlib.compress(msgspec.json.encode(content), 6)


def unpack(packed: bytes | memoryview, kind: type[Content]) -> Content:
    """Read what was stored; raises msgspec.DecodeError if another version wrote it otherwise."""
    return msgspec.json.decode(zlib.decompress(packed), type=kind)
