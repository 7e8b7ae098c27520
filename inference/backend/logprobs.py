"""How likely was a token, and what else might have come?"""

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Model, Row
from inference.protocol.events import Candidate, TokenLogprob

IMPOSSIBLE = -9999.0
"""Stands for minus infinity, which JSON cannot carry."""


def logits_to_logprob(model: Model, row: Row, token: int, num_top: int) -> TokenLogprob:
    """Give a token's log-probability under raw logits, and the best alternatives."""
    peak = float(row.max())
    norm = peak + float(np.log(np.exp(row - peak).sum(dtype=np.float64)))
    num_top = min(num_top, row.shape[0])
    best: NDArray[np.intp] = (
        np.argpartition(row, -num_top)[-num_top:] if num_top else np.empty(0, int)
    )
    best = best[np.argsort(-row[best], kind="stable")]
    return TokenLogprob(
        _chosen(model, token, float(row[token]) - norm),
        tuple(_candidate(model, int(other), float(row[other]) - norm) for other in best),
    )


def probs_to_logprob(
    model: Model, ids: NDArray[np.int32], probs: NDArray[np.float32], token: int, num_top: int
) -> TokenLogprob:
    """Give a token's log-probability among the candidates that sampling left."""
    order = np.argsort(-probs, kind="stable")[:num_top]
    chosen = probs[ids == token]
    return TokenLogprob(
        _chosen(model, token, _log(float(chosen[0]) if chosen.size else 0.0)),
        tuple(_candidate(model, int(ids[i]), _log(float(probs[i]))) for i in order if probs[i] > 0),
    )


def _chosen(model: Model, token: int, logprob: float) -> Candidate:
    """Describe the chosen token by the bytes it adds to the text: none for control tokens."""
    return Candidate(token, model.text_bytes(token).decode("latin-1"), _finite(logprob))


def _candidate(model: Model, token: int, logprob: float) -> Candidate:
    return Candidate(token, model.token_bytes(token).decode("latin-1"), _finite(logprob))


def _finite(logprob: float) -> float:
    return logprob if logprob > IMPOSSIBLE else IMPOSSIBLE


def _log(prob: float) -> float:
    return float(np.log(prob)) if prob > 0 else IMPOSSIBLE
