"""Which tokens does the grammar of one sequence permit next?"""

import ctypes

import llama_cpp
import numpy as np

from inference.backend import native
from inference.backend.base import Row
from inference.backend.grammar import check_grammar
from inference.backend.llama_model import LlamaModel
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.sampling import SamplingParams

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class Constraint:
    """Where one sequence stands in its grammar.

    Samplers choose freely, ask ``allows`` about their choice, and only where it is refused have
    ``restrict`` ban all that is impossible before they choose again.
    """

    def __init__(self, model: LlamaModel, params: SamplingParams) -> None:
        check_grammar(params.grammar)
        text = params.grammar.encode("utf-8")
        self._model = model
        self._native = native.address_of(
            llama_cpp.llama_sampler_init_grammar(model.vocab, text, b"root")
        )
        if not self._native:
            raise EngineError(
                ErrorCode.INVALID_GRAMMAR,
                "The grammar could not be compiled: it is left-recursive, "
                "or its repetitions multiply.",
            )

    def allows(self, token: int) -> bool:
        """Tell whether a token may come next."""
        candidates = np.zeros(1, _CANDIDATE)
        candidates[0] = (token, 1.0, 0.0)
        self._apply(candidates)
        return bool(candidates[0]["logit"] > -np.inf)

    def restrict(self, row: Row) -> None:
        """Ban in a row of logits whatever may not come next."""
        candidates = np.zeros(len(row), _CANDIDATE)
        candidates["id"] = np.arange(len(row))
        candidates["logit"] = row
        self._apply(candidates)
        row[:] = candidates["logit"]

    def accept(self, token: int) -> None:
        """Note that a token was chosen."""
        if not self._model.is_end_of_generation(token):
            native.sampler_accept(self._native, token)

    def close(self) -> None:
        """Give the native memory back; idempotent."""
        address, self._native = self._native, 0
        if address:
            native.sampler_free(address)

    def _apply(self, candidates: np.ndarray) -> None:
        array = llama_cpp.llama_token_data_array()
        array.data = ctypes.cast(candidates.ctypes.data, llama_cpp.llama_token_data_p)
        array.size, array.selected, array.sorted = len(candidates), -1, False
        native.sampler_apply(self._native, ctypes.addressof(array))
