"""Can these inputs ever be computed here?"""

from inference.engine.admission import check_tokens
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import EmbeddingJob
from inference.protocol.replicas import ModelFacts


def check_inputs(job: EmbeddingJob, facts: ModelFacts) -> None:
    """Raise EngineError for a job that can never run, naming the input at fault."""
    if not job.inputs:
        raise EngineError(ErrorCode.INVALID_PROMPT, "There is nothing to embed.")
    if not 0 <= job.num_dimensions <= facts.num_dimensions:
        raise EngineError(
            ErrorCode.INVALID_PROMPT, f"The model's vectors have {facts.num_dimensions} numbers."
        )
    for index, tokens in enumerate(job.inputs):
        _check_input(index, tokens, facts)


def _check_input(index: int, tokens: tuple[int, ...], facts: ModelFacts) -> None:
    if not tokens:
        raise EngineError(ErrorCode.INVALID_PROMPT, f"Input {index} is empty.")
    limit = facts.context_length
    if len(tokens) > limit:
        raise EngineError(
            ErrorCode.CONTEXT_LENGTH_EXCEEDED,
            f"Input {index} has {len(tokens)} tokens, but the model takes at most {limit}.",
        )
    try:
        check_tokens(tokens, facts.num_vocab)
    except EngineError as error:
        raise EngineError(error.code, f"Input {index}: {error.message}") from None
