"""How the beginning of a prompt is known again: hashes at lengths that all prompts share."""

from array import array
from hashlib import blake2b

from inference.protocol.jobs import GenerationJob, Job

FINE_TOKENS = 16
STEPS_PER_DOUBLING = 8
_HASH_BYTES = 8


def prefix_marks(job: Job) -> tuple[str, ...]:
    """Give a mark, "length.hash", for each beginning of the prompt, the shortest first.

    Equal marks mean equal beginnings in one scope: same salt, same adapters. Few marks do: the
    longest that two prompts share is within a ninth of all that they share.
    """
    if not isinstance(job, GenerationJob) or not job.cache_prompt:
        return ()
    scope = f"{job.deployment}\n{job.salt}\n{job.loras}".encode()
    digest = blake2b(scope, digest_size=_HASH_BYTES)
    tokens = array("q", job.prompt_tokens).tobytes()
    width = array("q").itemsize
    marks, told = [], 0
    for length in mark_lengths(len(job.prompt_tokens)):
        digest.update(tokens[told * width : length * width])
        told = length
        marks.append(f"{length}.{digest.copy().hexdigest()}")
    return tuple(marks)


def mark_lengths(num_tokens: int) -> tuple[int, ...]:
    """Give the lengths at which a prompt of that many tokens is marked."""
    lengths, length, step = [], FINE_TOKENS, FINE_TOKENS
    while length <= num_tokens:
        lengths.append(length)
        if length >= 2 * STEPS_PER_DOUBLING * step:
            step *= 2
        length += step
    return tuple(lengths)
