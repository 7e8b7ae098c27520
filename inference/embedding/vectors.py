"""How does a row of numbers travel?"""

import base64

import numpy as np
from numpy.typing import NDArray


def normalize_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length one; rows of zeros stay as they are."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    normalized = rows / np.where(lengths > 0, lengths, 1)
    return normalized.astype(np.float32)


def encode_row(row: NDArray[np.float32]) -> str:
    """Give the base64 form of little-endian float32 numbers."""
    return base64.b64encode(row.astype("<f4").tobytes()).decode("ascii")
