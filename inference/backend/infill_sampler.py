"""Which tokens may go on in a gap, and when is it filled?"""

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Row
from inference.backend.candidates import Candidates
from inference.backend.llama_model import LlamaModel

MOST_COMPARED = 64
"""Each token is compared with each other one: no more of them than that."""
_WEIGHT_OF_ENDS = 3
_LEAST_SHARE = 0.2


class InfillSampler:
    """llama.cpp's sampler ``infill``, which editors ask for behind top_k and top_p.

    It ends a text rather than guess on: where an end is about as likely as each other token, and
    where none of them stands out. Tokens that one other token begins with count as that one.

    llama.cpp's own compares all tokens that are left, a whole vocabulary perhaps, and ends a text
    also where its end is banned.
    """

    def __init__(self, model: LlamaModel) -> None:
        self._model = model
        ends = (llama_cpp.llama_vocab_eot(model.vocab), llama_cpp.llama_vocab_eos(model.vocab))
        self._ends = [end for end in ends if end >= 0]

    def narrow(self, candidates: Candidates, row: Row) -> None:
        """Leave over what may come; ``row`` has the logits from before any sampler."""
        ids, logits = candidates.likeliest(MOST_COMPARED)
        if not np.isfinite(logits[0]):
            return
        shares = np.exp(logits - logits[0])
        shares /= shares.sum()
        are_ends = np.isin(ids, self._model.eog_tokens)
        if _WEIGHT_OF_ENDS * shares[are_ends].sum() * len(ids) > shares[~are_ends].sum():
            candidates.keep(ids[are_ends], logits[are_ends])
            return
        self._join_beginnings(ids, shares)
        kept = are_ends | (shares >= _LEAST_SHARE)
        num_texts = np.count_nonzero(kept & ~are_ends)
        if not num_texts:
            self._end(candidates, row, ids[:1], logits[:1])
            return
        kept &= are_ends | (shares >= shares[kept].sum() / (num_texts + 1))
        candidates.keep(ids[kept], logits[kept])

    def _join_beginnings(self, ids: NDArray[np.int32], shares: NDArray[np.float32]) -> None:
        """Add the share of a token to that of one it begins, or that begins it: the likelier."""
        texts = [self._model.text_bytes(int(token)) for token in ids]
        for first, beginning in enumerate(texts):
            for second, text in enumerate(texts):
                if not shares[first]:
                    break
                if first == second or not beginning or not text.startswith(beginning):
                    continue
                lost, grown = (first, second) if shares[second] > shares[first] else (second, first)
                shares[grown] += shares[lost]
                shares[lost] = 0

    def _end(
        self,
        candidates: Candidates,
        row: Row,
        best: NDArray[np.int32],
        logit: NDArray[np.float32],
    ) -> None:
        """Leave over an end of the text; where none is possible, the best token."""
        possible = [end for end in self._ends if row[end] > -np.inf]
        candidates.keep(np.array(possible[:1] or best, np.int32), logit)
