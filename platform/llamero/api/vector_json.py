"""How do vectors become JSON, without holding the event loop for long?"""

import asyncio
from base64 import b64decode
from collections.abc import Sequence
from struct import iter_unpack, unpack

import msgspec

from llamero.api.embedding_jobs import VectorRows

# About two milliseconds of encoding.
_NUMBERS_A_TURN = 32_768


async def write_vectors(rows: VectorRows) -> list[msgspec.Raw]:
    """Give each input's one row as a JSON list of numbers."""
    return [msgspec.Raw(b",".join(found)) for found in await _write(rows)]


async def write_tables(rows: VectorRows) -> list[msgspec.Raw]:
    """Give all rows of each input as a JSON list of lists."""
    return [msgspec.Raw(b"[" + b",".join(found) + b"]") for found in await _write(rows)]


def read_first_numbers(rows: VectorRows) -> list[float]:
    """Give the first number of each input's row."""
    return [float(unpack("<f", b64decode(texts[0])[:4])[0]) for texts in rows.texts]


async def _write(rows: VectorRows) -> list[list[bytes]]:
    written: list[list[bytes]] = []
    num_due = 0
    for texts in rows.texts:
        written.append(_write_rows(texts, rows.num_dimensions))
        num_due += rows.num_dimensions * len(written[-1])
        if num_due > _NUMBERS_A_TURN:
            num_due = 0
            await asyncio.sleep(0)
    return written


def _write_rows(texts: Sequence[str], num_dimensions: int) -> list[bytes]:
    return [
        msgspec.json.encode(row)
        for text in texts
        for row in iter_unpack(f"<{num_dimensions}f", b64decode(text))
    ]
