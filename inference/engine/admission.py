"""Can this job ever run here?"""

import msgspec

from inference.backend.base import Backend, Model
from inference.backend.grammar_sampler import read_preserved
from inference.engine.adapters import settle_adapters
from inference.engine.sequence import Sequence
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import GenerationJob, Job
from inference.protocol.replicas import ModelFacts, RuntimeProfile

MAX_LOGPROBS = 256
DEFAULTS = RuntimeProfile()


def admit(job: Job, backend: Backend, profile: RuntimeProfile = DEFAULTS) -> Sequence:
    """Make a sequence of a job; raises EngineError where it can never run. Safe from any thread."""
    if not isinstance(job, GenerationJob):
        raise EngineError(ErrorCode.WRONG_MODEL_KIND, "This model generates text, not embeddings.")
    facts = backend.model.facts()
    prompt = job.prompt_tokens or _empty_prompt(facts)
    check_tokens(prompt, facts.num_vocab)
    check_length(len(prompt), facts.context_length)
    if job.num_logprobs is not None and not 0 <= job.num_logprobs <= MAX_LOGPROBS:
        raise EngineError(
            ErrorCode.INVALID_SAMPLING,
            f"At most {MAX_LOGPROBS} alternatives can be listed per token.",
        )
    loras = settle_adapters(job.loras, facts.adapters)
    job = msgspec.structs.replace(job, loras=loras)
    sequence = Sequence(
        job,
        prompt,
        backend.open_sampler(job),
        facts.context_length,
        is_shifting=profile.is_context_shifting,
        # A control token that is named as a stop string spells it, and so stops.
        preserved=read_preserved(backend.model, (*job.sampling.preserved_tokens, *job.stop)),
    )
    if job.emitted_tokens:
        _replay(sequence, backend.model, is_stepwise=profile.is_deterministic)
    return sequence


def _replay(sequence: Sequence, model: Model, *, is_stepwise: bool) -> None:
    """Take in what earlier attempts told.

    Stepwise, the sampler draws it again from the same numbers. That needs a seed: a choice at
    random cannot be drawn twice.
    """
    job = sequence.job
    can_redraw = job.sampling.temperature <= 0 or job.sampling.seed is not None
    for token in job.emitted_tokens:
        is_end = model.is_end_of_generation(token)
        sequence.replay(token, b"" if is_end else sequence.spell(token, model))
    if is_stepwise and can_redraw:
        return
    for token in job.emitted_tokens:
        sequence.sampler.accept(token)
    sequence.num_redrawn = len(job.emitted_tokens)
    if not is_stepwise:
        sequence.num_prefill = sequence.num_tokens


def check_tokens(tokens: tuple[int, ...], num_vocab: int) -> None:
    """Refuse ids outside the vocabulary, naming the first."""
    if min(tokens) >= 0 and max(tokens) < num_vocab:
        return
    position = next(at for at, token in enumerate(tokens) if not 0 <= token < num_vocab)
    raise EngineError(
        ErrorCode.INVALID_TOKEN_ID,
        f"Token id {tokens[position]} at position {position} is outside the vocabulary "
        f"of {num_vocab} tokens.",
    )


def check_length(num_prompt: int, context_length: int) -> None:
    """Refuse a prompt that leaves no room for a single token."""
    if num_prompt >= context_length:
        raise EngineError(
            ErrorCode.CONTEXT_LENGTH_EXCEEDED,
            f"The prompt has {num_prompt} tokens, but the context holds {context_length} tokens, "
            "the answer included.",
        )


def _empty_prompt(facts: ModelFacts) -> tuple[int, ...]:
    """Give the token generation starts from when nothing is asked."""
    starts = (facts.bos_token_id, facts.eos_token_id, 0)
    return (next(token for token in starts if token >= 0),)
