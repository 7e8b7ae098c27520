"""What each sampler should leave, computed plainly: a probability per token, 0 for none."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Row
from inference.backend.llama import LlamaBackend
from inference.protocol.sampling import SamplingParams
from tests.inference.backend.jobs import make_job

Logits = NDArray[np.float64]
Expected = Callable[[Logits, Mapping[str, float]], Logits]


def left_by(
    backend: LlamaBackend, row: Row, params: SamplingParams, prompt: Sequence[int] = (5,)
) -> Logits:
    """Give the probabilities after the samplers of a request, as they are told to clients."""
    job = make_job(tuple(prompt), sampling=params, num_logprobs=len(row), post_sampling_probs=True)
    sampler = backend.open_sampler(job)
    logprob = sampler.sample(row.copy()).logprob
    sampler.close()
    assert logprob is not None
    left = np.zeros(len(row))
    for candidate in logprob.top:
        left[candidate.id] = np.exp(candidate.logprob)
    return left


def probabilities(logits: Logits) -> Logits:
    """Give the softmax."""
    weights: Logits = np.exp(logits - logits.max())
    return weights / float(weights.sum())


def keep(logits: Logits, is_kept: NDArray[np.bool_]) -> Logits:
    """Make everything else impossible."""
    return np.where(is_kept, logits, -np.inf)


def by_rank(logits: Logits, count: int) -> NDArray[np.bool_]:
    """Tell which are the most likely."""
    is_kept = np.zeros(len(logits), bool)
    is_kept[np.argsort(-logits, kind="stable")[:count]] = True
    return is_kept


def top_k(logits: Logits, params: Mapping[str, float]) -> Logits:
    """Keep the most likely."""
    return keep(logits, by_rank(logits, int(params["top_k"])))


def top_p(logits: Logits, params: Mapping[str, float]) -> Logits:
    """Keep the fewest that together are likely enough."""
    ends = np.cumsum(np.sort(probabilities(logits))[::-1])
    count = int(np.searchsorted(ends, params["top_p"]) + 1)
    return keep(logits, by_rank(logits, max(count, int(params.get("min_keep", 0)))))


def min_p(logits: Logits, params: Mapping[str, float]) -> Logits:
    """Keep what is likely enough beside the most likely."""
    count = int((logits >= logits.max() + np.log(params["min_p"])).sum())
    return keep(logits, by_rank(logits, max(count, int(params.get("min_keep", 0)))))


def top_n_sigma(logits: Logits, params: Mapping[str, float]) -> Logits:
    """Keep what lies within some standard deviations of the best."""
    finite = logits[logits > -np.inf]
    return keep(logits, logits >= logits.max() - params["top_n_sigma"] * finite.std())


def typical_p(logits: Logits, params: Mapping[str, float]) -> Logits:
    """Keep what surprises as much as is to be expected, until enough is kept."""
    chances = probabilities(logits)
    possible = chances > 0
    surprise = np.full(len(logits), np.inf)
    surprise[possible] = -np.log(chances[possible])
    entropy = (chances[possible] * surprise[possible]).sum()
    order = np.argsort(np.abs(surprise - entropy), kind="stable")
    count = int((np.cumsum(chances[order]) <= params["typical_p"]).sum()) + 1
    is_kept = np.zeros(len(logits), bool)
    is_kept[order[:count]] = True
    return keep(logits, is_kept)


def xtc(logits: Logits, params: Mapping[str, float]) -> Logits:
    """Leave out all but the least likely of those that are likely."""
    likely = np.flatnonzero(probabilities(logits) >= params["xtc_threshold"])
    if len(likely) < 2:
        return logits
    is_kept = np.ones(len(logits), bool)
    is_kept[likely[np.argsort(-logits[likely])[:-1]]] = False
    return keep(logits, is_kept)


def temperature(logits: Logits, params: Mapping[str, float]) -> Logits:
    """Flatten or sharpen, by how sure the model is where there is a range."""
    width = params.get("dynatemp_range", 0.0)
    heat = params["temperature"]
    if width:
        chances = probabilities(logits)
        possible = chances[chances > 0]
        entropy = -(possible * np.log(possible)).sum() / np.log(len(logits))
        low, high = max(0.0, heat - width), heat + width
        heat = low + (high - low) * entropy ** params.get("dynatemp_exponent", 1.0)
    return logits / heat


def penalties(logits: Logits, params: Mapping[str, float], memory: Sequence[int]) -> Logits:
    """Make what was said less likely."""
    changed = logits.copy()
    repeat = params.get("repeat_penalty", 1.0)
    for token, count in Counter(memory).items():
        logit = changed[token]
        logit = logit * repeat if logit <= 0 else logit / repeat
        logit -= count * params.get("frequency_penalty", 0.0)
        changed[token] = logit - params.get("presence_penalty", 0.0)
    return changed


def dry(logits: Logits, params: Mapping[str, float], memory: Sequence[int]) -> Logits:
    """Make it less likely to go on with a phrase that was said; breakers are not looked at."""
    changed = logits.copy()
    longest: dict[int, int] = {}
    for end in range(1, len(memory)):
        length = 0
        while length < end and memory[end - 1 - length] == memory[len(memory) - 1 - length]:
            length += 1
        longest[memory[end]] = max(longest.get(memory[end], 0), length)
    for token, length in longest.items():
        if length >= params["dry_allowed_length"]:
            exponent = length - params["dry_allowed_length"]
            changed[token] -= params["dry_multiplier"] * params["dry_base"] ** exponent
    return changed
