"""Walk a grammar with llama.cpp's own matcher: along a text, or at random."""

import numpy as np

from inference.backend.base import Sampler
from inference.backend.llama import LlamaBackend
from inference.protocol.sampling import SamplingParams
from tests.inference.backend.jobs import make_job

_FIRST_BYTE = 3
_END = 2
# They may begin overlong forms, which the matcher takes for characters.
_NO_BYTES = [_FIRST_BYTE + value for value in (0xE0, 0xF0)]
_CLOSERS = [_FIRST_BYTE + value for value in b'"]}0'] + [_END]


def accepts(backend: LlamaBackend, grammar: str, text: str) -> bool:
    """Tell whether a text, and its end, is what the grammar allows."""
    sampler = _open(backend, grammar, temperature=0.0)
    try:
        for token in [*(_FIRST_BYTE + value for value in text.encode()), _END]:
            row = np.full(backend.model.num_vocab, -20.0, np.float32)
            row[token] = 20.0
            if sampler.sample(row).token != token:
                return False
    finally:
        sampler.close()
    return True


def write_at_random(
    backend: LlamaBackend, grammar: str, random: np.random.Generator, *, num_tokens: int = 500
) -> str | None:
    """Sample a text from noise that likes to close what is open; None if it does not end."""
    sampler = _open(backend, grammar, temperature=1.0)
    text = bytearray()
    try:
        for step in range(num_tokens):
            row = (random.standard_normal(backend.model.num_vocab) * 2).astype(np.float32)
            row[_NO_BYTES] = -np.inf
            row[_CLOSERS] += 2 + 0.1 * max(0, step - 30)
            token = sampler.sample(row).token
            if backend.model.is_end_of_generation(token):
                return text.decode()
            text += backend.model.token_bytes(token)
    finally:
        sampler.close()
    return None


def _open(backend: LlamaBackend, grammar: str, *, temperature: float) -> Sampler:
    params = SamplingParams(
        temperature=temperature, top_k=0, top_p=1.0, min_p=0.0, seed=1, grammar=grammar
    )
    return backend.open_sampler(make_job(sampling=params))
