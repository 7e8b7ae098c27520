"""The unit of work: one sequence to generate, or one batch of texts to embed."""

from hashlib import blake2b
from typing import Any

import msgspec

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.sampling import SamplingParams

Loras = tuple[tuple[int, float], ...]
"""Adapters of a deployment by their place in its list, each with how strongly it acts."""
EUCLIDEAN = 2
IDLE_PRIORITY = -200
"""The lowest class: for what may run where nothing else wants to, and never has a turn before."""


class ReasoningMarks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What stands around reasoning, so that its tokens can be counted.

    ``is_open``: the answer begins within. ``has_channels``: each part has a header of its own.
    """

    opening: str
    closing: str
    is_open: bool = False
    has_channels: bool = False


class GenerationJob(msgspec.Struct, frozen=True, kw_only=True, tag="generate", omit_defaults=True):
    """One choice of one prompt; a request with n choices or several prompts is several jobs.

    ``max_tokens`` None means until the context is full. ``salt`` bounds prefix sharing: only jobs
    of one salt may reuse each other's KV cache. ``deadline`` is Unix time in seconds.
    ``stream`` False lets the worker send the text in few large events.
    ``attempt`` fences writers: a worker with an older attempt can no longer write.
    ``emitted_tokens`` were generated and told by earlier attempts: generation goes on after them,
    and events are told from the next one on.
    ``is_durable`` lets it go on when nobody follows it, and keeps its events for who comes back.
    ``num_prompt_logprobs`` asks for the log-probabilities of the prompt with that many
    alternatives. ``num_keep`` (-1 all) is how much of the prompt a context shift keeps, and
    ``num_discard`` how many tokens behind that go, 0 half of them.
    ``min_indent`` ends the text before a line, but for the first, that begins with fewer blanks;
    ``line_limit_ms`` ends it with the first line break after so long, 0 never.
    ``is_timed`` has the pace told with all tokens, and the progress of short prompts too.
    ``num_draft_tokens`` 0 turns speculation off for the job, None leaves it to the deployment;
    shorter guesses than ``min_draft_tokens`` and less likely ones than ``min_draft_likely`` are
    left.
    ``loras`` are the adapters that act; None leaves the deployment's own scales.
    ``reasoning`` has the tokens of reasoning counted; None where there is none.
    """

    id: str
    deployment: str
    owner: str
    salt: str
    gateway: str
    prompt_tokens: tuple[int, ...]
    deadline: float
    sampling: SamplingParams = SamplingParams()
    max_tokens: int | None = None
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    num_logprobs: int | None = None
    post_sampling_probs: bool = False
    num_prompt_logprobs: int | None = None
    cache_prompt: bool = True
    num_keep: int = 0
    num_discard: int = 0
    min_indent: int = 0
    line_limit_ms: int = 0
    is_timed: bool = False
    num_draft_tokens: int | None = None
    min_draft_tokens: int = 0
    min_draft_likely: float = 0.0
    loras: Loras | None = None
    reasoning: ReasoningMarks | None = None
    emitted_tokens: tuple[int, ...] = ()
    stream: bool = True
    is_durable: bool = False
    priority: int = 0
    attempt: int = 1

    @property
    def cost(self) -> int:
        """Tokens this job may use, for fair sharing between owners."""
        return len(self.prompt_tokens) + (self.max_tokens or 256)

    @property
    def fingerprint(self) -> str:
        """Tell jobs apart by what they make an engine do, whoever sends them."""
        alike = msgspec.structs.replace(self, salt="", is_durable=False, **_ANONYMOUS)
        return _digest(alike)


class EmbeddingJob(msgspec.Struct, frozen=True, kw_only=True, tag="embed", omit_defaults=True):
    """Inputs of one request, already tokenized, each to become one vector.

    For a reranking model an input is a joined pair, and its vector the scores. ``norm`` scales
    vectors to length one by that p-norm; -1 leaves them, 0 scales the largest number to the range
    of 16-bit integers. ``num_dimensions`` keeps that many numbers, before scaling; 0 keeps all.
    """

    id: str
    deployment: str
    owner: str
    gateway: str
    inputs: tuple[tuple[int, ...], ...]
    deadline: float
    norm: int = EUCLIDEAN
    num_dimensions: int = 0
    priority: int = 0
    attempt: int = 1

    @property
    def cost(self) -> int:
        """Tokens this job will use, for fair sharing between owners."""
        return sum(len(tokens) for tokens in self.inputs)

    @property
    def fingerprint(self) -> str:
        """Tell jobs apart by what they make an engine do, whoever sends them."""
        return _digest(msgspec.structs.replace(self, **_ANONYMOUS))


Job = GenerationJob | EmbeddingJob

_ANONYMOUS: dict[str, Any] = {
    "id": "",
    "owner": "",
    "gateway": "",
    "deadline": 0.0,
    "priority": 0,
    "attempt": 1,
}
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Job] = msgspec.json.Decoder(Job)


def blamed_field(error: EngineError, job: Job) -> str:
    """Give the field of the request that an error is about, "" where there is none.

    What is wrong with a grammar is wrong with the field that it was made from.
    """
    is_grammar = error.param == "grammar" or (
        error.code is ErrorCode.INVALID_GRAMMAR and not error.param
    )
    if is_grammar and isinstance(job, GenerationJob):
        return job.sampling.grammar_field
    return error.param or ""


def encode_job(job: Job) -> bytes:
    """Give the JSON form of a job."""
    return _encoder.encode(job)


def decode_job(raw: bytes) -> Job:
    """Read a job; raises msgspec.ValidationError for anything that is not one."""
    return _decoder.decode(raw)


def _digest(job: Job) -> str:
    return blake2b(encode_job(job), digest_size=16).hexdigest()
