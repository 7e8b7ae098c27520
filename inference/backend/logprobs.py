"""How likely was a token, and what else might have come?"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Model, Row, Rows
from inference.protocol.events import LEAST_LOGPROB, Candidate, TokenLogprob

_LIKELY_MARGIN = np.float32(8)
# To sort more than these takes longer than to look for the best among them first.
_MAX_SORTED = 1024


def logits_to_logprob(
    model: Model, row: Row, token: int, spelling: bytes, num_top: int
) -> TokenLogprob:
    """Give a generated token's log-probability under raw logits, and the best alternatives.

    ``spelling`` is what it adds to the text: nothing where it is a control token.
    """
    norm = _normalizer(row, np.empty_like(row))
    chosen = Candidate(token, _latin1(spelling), _finite(float(row[token]) - norm))
    return TokenLogprob(chosen, _top(model, row, norm, num_top))


def rows_to_logprobs(
    model: Model, rows: Rows, tokens: Sequence[int], num_top: int
) -> Iterator[TokenLogprob]:
    """Give the log-probability of each row's token of a prompt, told by its bytes as written.

    Row by row, since one row fits the processor's cache and a table of them does not: a table
    takes twice as long.
    """
    scratch = np.empty(rows.shape[1], np.float32)
    for row, token in zip(rows, tokens, strict=True):
        norm = _normalizer(row, scratch)
        chosen = _candidate(model, token, float(row[token]) - norm)
        yield TokenLogprob(chosen, _top(model, row, norm, num_top))


def first_token(model: Model, token: int) -> TokenLogprob:
    """Describe the first token of a prompt, which nothing foretells."""
    return TokenLogprob(_candidate(model, token, 0.0), ())


def probs_to_logprob(
    model: Model,
    ids: NDArray[np.int32],
    probs: NDArray[np.float32],
    token: int,
    spelling: bytes,
    num_top: int,
) -> TokenLogprob:
    """Give a token's log-probability among the candidates that sampling left."""
    best = _best(probs, np.flatnonzero(probs > 0), num_top)
    found = probs[ids == token]
    prob = float(found[0]) if found.size else 0.0
    return TokenLogprob(
        Candidate(token, _latin1(spelling), _log(prob)),
        tuple(_candidate(model, int(ids[at]), _log(float(probs[at]))) for at in best),
    )


def _normalizer(row: Row, scratch: Row) -> float:
    """Give the logarithm of the sum of all exponentials."""
    peak = row.max()
    np.subtract(row, peak, out=scratch)
    np.exp(scratch, out=scratch)
    return float(peak) + float(np.log(scratch.sum()))


def _top(model: Model, row: Row, norm: float, num_top: int) -> tuple[Candidate, ...]:
    """Give the most likely tokens in order; equals by their id."""
    if not num_top:
        return ()
    likely = np.flatnonzero(row >= row.max() - _LIKELY_MARGIN)
    if len(likely) < num_top:
        likely = np.arange(len(row))
    best = _best(row, likely, num_top)
    return tuple(
        _candidate(model, token, logit - norm)
        for token, logit in zip(best.tolist(), row[best].tolist(), strict=True)
    )


def _best(values: NDArray[np.float32], places: NDArray[np.intp], num_best: int) -> NDArray[np.intp]:
    """Give the places of the largest values in order; of equal ones the first."""
    if len(places) > max(_MAX_SORTED, num_best):
        found = values[places]
        places = places[found >= np.partition(found, -num_best)[-num_best]]
    return places[np.argsort(-values[places], kind="stable")[:num_best]]


def _candidate(model: Model, token: int, logprob: float) -> Candidate:
    return Candidate(token, _latin1(model.token_bytes(token)), _finite(logprob))


def _latin1(data: bytes) -> str:
    return data.decode("latin-1")


def _finite(logprob: float) -> float:
    return logprob if logprob > LEAST_LOGPROB else LEAST_LOGPROB


def _log(prob: float) -> float:
    return float(np.log(prob)) if prob > 0 else LEAST_LOGPROB
