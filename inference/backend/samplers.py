"""Which sampler does a job get? The cheapest one that does what it asks for."""

import math

from inference.backend.base import Sampler
from inference.backend.candidates import Candidates
from inference.backend.chain import Chain
from inference.backend.greedy import BestToken, WeighedTokens
from inference.backend.lazy_grammar import open_constraint
from inference.backend.llama_model import LlamaModel
from inference.backend.logit_edits import LogitEdits
from inference.backend.native_samplers import NativeSamplers, effective_samplers, is_greedy
from inference.backend.reasoning_limit import LimitedReasoning
from inference.backend.token_sampler import Chooser, TokenSampler
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import GenerationJob
from inference.protocol.sampling import SAMPLER_LETTERS, SamplingParams

# llama.cpp divides by it.
_MIN_REPEAT_PENALTY = 1e-2


class Samplers:
    """Opens the samplers of one backend's jobs, and keeps what they share."""

    def __init__(self, model: LlamaModel) -> None:
        self._model = model
        self._candidates = Candidates(model.num_vocab)
        self._native = NativeSamplers(model)

    def open(self, job: GenerationJob) -> Sampler:
        """Build the sampler of a job; raises EngineError. Safe to call from any thread."""
        params = job.sampling
        _check(params, self._model.num_vocab)
        edits = LogitEdits(self._model, job)
        constraint = open_constraint(self._model, self._model.grammars, params)
        if params.reasoning_limit is not None:
            constraint = LimitedReasoning(self._model, params.reasoning_limit, constraint)
        return TokenSampler(self._model, job, self._open_chooser(job), edits, constraint)

    def close(self) -> None:
        """Free what is shared; the samplers of jobs are closed by whoever opened them."""
        self._native.close()

    def _open_chooser(self, job: GenerationJob) -> Chooser:
        params = job.sampling
        names = effective_samplers(params)
        if is_greedy(params) and not names:
            return BestToken()
        is_plain = not params.mirostat and "adaptive_p" not in params.samplers
        if is_plain and not names:
            return WeighedTokens(1.0, params.seed)
        if is_plain and names == ("temperature",) and not params.dynatemp_range:
            return WeighedTokens(params.temperature, params.seed)
        return Chain(self._native, self._candidates, job, self._model.context_length)


def _check(params: SamplingParams, num_vocab: int) -> None:
    """Refuse what native code cannot stand, whoever built the job."""
    for name in params.samplers:
        if name not in SAMPLER_LETTERS.values():
            raise _refused("samplers", f"Unknown sampler '{name}'.")
    for name in params.__struct_fields__:
        value = getattr(params, name)
        if isinstance(value, float) and not math.isfinite(value):
            raise _refused(name, f"{name} must be a finite number.")
    if params.repeat_penalty < _MIN_REPEAT_PENALTY:
        raise _refused("repeat_penalty", f"repeat_penalty must be {_MIN_REPEAT_PENALTY} or more.")
    if params.mirostat not in (0, 1, 2):
        raise _refused("mirostat", "mirostat must be 0, 1 or 2.")
    for token, _ in params.logit_bias:
        if not 0 <= token < num_vocab:
            raise EngineError(
                ErrorCode.INVALID_TOKEN_ID,
                f"logit_bias names token {token}, outside the vocabulary.",
                param="logit_bias",
            )


def _refused(param: str, message: str) -> EngineError:
    return EngineError(ErrorCode.INVALID_SAMPLING, message, param=param)
