"""Whether a job told each token and each letter once: the fake engine's answers are foreseen."""

import zlib
from collections.abc import Sequence

import numpy as np

from inference.backend.fake import FIRST_BYTE, letter_of
from inference.protocol.events import Done, Event, Tokens
from inference.protocol.jobs import GenerationJob


def undisturbed(job: GenerationJob) -> tuple[int, ...]:
    """Give the tokens that the fake engine generates, whatever happens on the way."""
    return foresee(job.prompt_tokens, job.max_tokens or 0)


def foresee(prompt: Sequence[int], num_tokens: int) -> tuple[int, ...]:
    """Give the tokens that follow a prompt; the checksum grows with the sequence."""
    checksum, tokens = zlib.crc32(np.array(prompt, np.int32).tobytes()), []
    for _ in range(num_tokens):
        tokens.append(letter_of(checksum))
        checksum = zlib.crc32(np.array(tokens[-1:], np.int32).tobytes(), checksum)
    return tuple(tokens)


def spell(tokens: Sequence[int]) -> str:
    """Give the text of generated tokens."""
    return bytes(token - FIRST_BYTE for token in tokens).decode()


def check_whole(job: GenerationJob, events: list[Event]) -> None:
    """Assert that a job told each token and each letter once."""
    end = events[-1]
    assert isinstance(end, Done), end
    told = [event for event in events if isinstance(event, Tokens)]
    token_ids = tuple(token for event in told for token in event.token_ids)
    assert token_ids == undisturbed(job)
    assert "".join(event.text for event in told) == spell(token_ids)
    assert end.num_completion_tokens == len(token_ids)
    assert end.num_prompt_tokens == len(job.prompt_tokens)
