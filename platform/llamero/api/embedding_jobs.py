"""Texts to vectors: limits checked, one job sent, its vectors gathered in order."""

import secrets
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass
from math import sqrt
from struct import pack, unpack

from inference.protocol.events import Done, Failed, Vectors
from inference.protocol.jobs import EmbeddingJob
from llamero import dispatch
from llamero.api.errors import from_failed
from llamero.api.prompts import PromptText, tokenize_prompts
from llamero.api.run import GenerationRun
from llamero.errors import InvalidValue, LlameroError
from models_registry.selectors import ServedModel

MAX_INPUTS = 2048


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors in the order of their texts, each as base64 of little-endian float32."""

    vectors: tuple[str, ...]
    num_tokens: int


async def embed(
    *, served: ServedModel, inputs: list[PromptText], param: str, owner: str, normalize: bool = True
) -> Embeddings:
    """Embed inputs; raises LlameroError or EngineError. A cancelled caller stops the job."""
    if len(inputs) > MAX_INPUTS:
        raise InvalidValue(param, f"{param} may hold at most {MAX_INPUTS} items.")
    _refuse_empty(inputs, param)
    dispatcher = dispatch.get_dispatcher()
    facts = await dispatcher.facts(served.deployment)
    tokens = await tokenize_prompts(served.deployment, inputs, param, parse_special=False)
    for source, ids in zip(inputs, tokens, strict=True):
        if len(ids) > facts.context_length:
            raise _too_long(source, param, len(ids), facts.context_length)
    job = EmbeddingJob(
        id=secrets.token_hex(12),
        deployment=served.deployment,
        owner=owner,
        gateway=dispatcher.gateway_id,
        inputs=tuple(tokens),
        deadline=time.time() + served.profile.job_timeout_seconds,
        norm=2 if normalize else -1,
    )
    stream = await dispatcher.submit(job, max_queue=served.profile.max_queue)
    vectors = await _gather(GenerationRun([stream]), len(tokens))
    return Embeddings(vectors, sum(len(ids) for ids in tokens))


def read_floats(vector: str) -> list[float]:
    """Give the numbers of a vector."""
    raw = b64decode(vector)
    return list(unpack(f"<{len(raw) // 4}f", raw))


def shorten(vector: str, dimensions: int) -> str:
    """Keep the first numbers of a vector and bring it to length one again."""
    numbers = read_floats(vector)[:dimensions]
    length = sqrt(sum(number * number for number in numbers)) or 1.0
    return b64encode(pack(f"<{dimensions}f", *(number / length for number in numbers))).decode()


async def _gather(run: GenerationRun, num_inputs: int) -> tuple[str, ...]:
    vectors = [""] * num_inputs
    try:
        async for _, event in run:
            match event:
                case Vectors():
                    last = event.first_index + len(event.vectors)
                    vectors[event.first_index : last] = event.vectors
                case Failed():
                    raise from_failed(event)
                case Done():
                    break
    finally:
        await run.close()
    if not all(vectors) or len(vectors) != num_inputs:
        raise LlameroError(500, "internal_error", "The worker returned too few vectors.")
    return tuple(vectors)


def _refuse_empty(inputs: list[PromptText], param: str) -> None:
    for source in inputs:
        if source.parts == ("",):
            raise InvalidValue(param, f"{source.path} must not be empty.")


def _too_long(source: PromptText, param: str, num_tokens: int, limit: int) -> LlameroError:
    return LlameroError(
        400,
        "context_length_exceeded",
        f"{source.path} has {num_tokens} tokens; the model takes at most {limit}.",
        param=param,
        extra={"n_prompt_tokens": num_tokens, "n_ctx": limit},
    )
