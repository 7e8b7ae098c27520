"""How does a row of numbers become a vector that travels?"""

import base64

import numpy as np
from numpy.typing import NDArray

from inference.protocol.jobs import EUCLIDEAN

UNSCALED, INT16 = -1, 0
_INT16_RANGE = 32760.0

Rows = NDArray[np.float32]


def scale_rows(rows: Rows, norm: int) -> Rows:
    """Bring each row to length one by a p-norm, or as UNSCALED and INT16 say.

    The results are llama-server's. Rows of zeros stay as they are.
    """
    if norm == UNSCALED:
        return rows
    wide = rows.astype(np.float64)
    largest = np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    largest[largest == 0] = 1
    if norm == INT16:
        lengths = largest / _INT16_RANGE
    elif norm == EUCLIDEAN:
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, np.newaxis]
    else:
        # Powers of numbers above one would overflow, of small ones vanish.
        powers = (np.abs(wide) / largest) ** norm
        lengths = largest * powers.sum(axis=1, keepdims=True) ** (1 / norm)
    lengths[lengths == 0] = 1
    scaled: Rows = (wide / lengths).astype(np.float32)
    return scaled


def encode_rows(rows: Rows) -> str:
    """Give the base64 form of rows, one after another, as little-endian float32."""
    return base64.b64encode(rows.astype("<f4", copy=False).tobytes()).decode("ascii")
