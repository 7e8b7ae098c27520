"""What is a client told of the rows that a batch gave?"""

from collections.abc import Iterator

from inference.embedding.vectors import Rows, encode_rows, scale_rows
from inference.protocol.events import Vectors
from inference.protocol.jobs import EmbeddingJob

MAX_EVENT_BYTES = 192 << 10
"""Bytes of numbers in one event, before base64: a reader never waits for a huge one."""


def tell_vectors(job: EmbeddingJob, first_input: int, vectors: Rows) -> Iterator[Vectors]:
    """Give the events of consecutive inputs' vectors, cut and scaled as the job wants."""
    scaled = scale_rows(vectors[:, : job.num_dimensions or None], job.norm)
    for at, piece in _cut(scaled):
        texts = tuple(encode_rows(row) for row in piece)
        yield Vectors(first_input + at, scaled.shape[1], texts)


def tell_token_rows(index: int, rows: Rows) -> Iterator[Vectors]:
    """Give the events of one input's token rows, as they are: llama-server scales none of these."""
    for _, piece in _cut(rows):
        yield Vectors(index, rows.shape[1], (encode_rows(piece),))


def _cut(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Cut a table into pieces of a bounded size, each with the place of its first row."""
    step = max(1, MAX_EVENT_BYTES // (4 * max(1, rows.shape[1])))
    for at in range(0, len(rows), step):
        yield at, rows[at : at + step]
