"""How is a token chosen where llama.cpp's samplers are needed for it?"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference.backend import native
from inference.backend.base import Row
from inference.backend.candidates import Candidates, Cut
from inference.backend.draws import CHANCE, Draws
from inference.backend.infill_sampler import InfillSampler
from inference.backend.native_samplers import (
    NativeSamplers,
    chain_of,
    effective_samplers,
    is_greedy,
    memory_length,
)
from inference.protocol.jobs import GenerationJob
from inference.protocol.sampling import SamplingParams

_TOP_K_MARGINS = (8.0, 12.0, 16.0)
_ROUNDING = 1e-3
_PENALTIES = frozenset({"penalties", "dry"})
_REMEMBERING = _PENALTIES | {"adaptive_p"}
_TAKING_LOGARITHMS = frozenset({"typ_p", "mirostat"})
_ALONE = frozenset({"xtc", "infill"})


@dataclass(frozen=True, slots=True)
class _Part:
    """Samplers that act in one go: always, or with a chance; some on what is likely only."""

    address: int = 0
    infill: InfillSampler | None = None
    chance: float = 1.0
    is_for_likely: bool = False
    is_remembering: bool = False


class Chain:
    """Chooses by native samplers in the order a request names; frees them by ``close``."""

    def __init__(
        self,
        samplers: NativeSamplers,
        candidates: Candidates,
        job: GenerationJob,
        context_length: int,
    ) -> None:
        params = job.sampling
        self._candidates = candidates
        self._draws = Draws(params.seed)
        self._is_greedy = is_greedy(params)
        self._selector = _selector_name(params)
        self._cut = _find_cut(params)
        self._parts = _open_parts(samplers, params, self._selector)
        self._touched = _Touched()
        length = memory_length(params, context_length)
        self._has_penalties = length > 0
        for token in job.prompt_tokens[-length:] if length else ():
            self.accept(token)

    def choose(self, row: Row, position: int, purpose: int) -> int:
        """Choose a token; -1 where none is possible."""
        candidates = self._candidates
        is_possible = (
            candidates.fill_likely(row, self._cut, self._touched.ids)
            if self._cut
            else candidates.fill(row)
        )
        if not is_possible:
            return -1
        for part in self._parts:
            if part.chance < 1 and self._draws.at(position, CHANCE) >= part.chance:
                continue
            if part.is_for_likely and not candidates.drop_unlikely():
                return -1
            if part.infill:
                part.infill.narrow(candidates, row)
            else:
                candidates.apply(part.address)
        if self._selector:
            return candidates.selected()
        if self._is_greedy:
            return candidates.best()
        return candidates.pick(self._draws.at(position, purpose))

    def accept(self, token: int) -> None:
        """Let samplers with a memory see a token."""
        for part in self._parts:
            if part.is_remembering:
                native.sampler_accept(part.address, token)
        if self._has_penalties:
            self._touched.add(token)

    def probabilities(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give the tokens among which the last choice was made, and how likely each was."""
        return self._candidates.probabilities()

    def close(self) -> None:
        """Give the native memory back; idempotent."""
        parts, self._parts = self._parts, ()
        for part in parts:
            if part.address:
                native.sampler_free(part.address)


class _Touched:
    """The distinct tokens that penalties may touch. Some may have left their memory since."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._ids = np.empty(64, np.int32)

    @property
    def ids(self) -> NDArray[np.int32]:
        """Give them in order of arrival."""
        return self._ids[: len(self._known)]

    def add(self, token: int) -> None:
        """Take one more token in."""
        if token in self._known:
            return
        if len(self._known) == len(self._ids):
            self._ids = np.resize(self._ids, 2 * len(self._ids))
        self._ids[len(self._known)] = token
        self._known.add(token)


def _selector_name(params: SamplingParams) -> str:
    """Name the native sampler that picks; nothing where the pick is drawn by position."""
    if is_greedy(params):
        return ""
    if params.mirostat:
        return "mirostat"
    return "adaptive_p" if "adaptive_p" in params.samplers else ""


def _open_parts(
    samplers: NativeSamplers, params: SamplingParams, selector: str
) -> tuple[_Part, ...]:
    """Make the samplers, joined where nothing has to happen between them."""
    groups: list[list[str]] = []
    for name in (*effective_samplers(params), *filter(None, (selector,))):
        if not groups or name in _ALONE | _TAKING_LOGARITHMS or groups[-1][-1] in _ALONE:
            groups.append([])
        groups[-1].append(name)
    return tuple(_open_part(samplers, params, names) for names in groups)


def _open_part(samplers: NativeSamplers, params: SamplingParams, names: list[str]) -> _Part:
    if "infill" in names:
        return _Part(infill=samplers.open_infill())
    return _Part(
        address=chain_of([samplers.open(name, params) for name in names]),
        chance=params.xtc_probability if "xtc" in names else 1.0,
        is_for_likely=names[0] in _TAKING_LOGARITHMS,
        is_remembering=not _REMEMBERING.isdisjoint(names),
    )


def _find_cut(params: SamplingParams) -> Cut | None:
    """Tell what the first sampler that cuts can leave over; None where any token may matter."""
    names = [name for name in effective_samplers(params) if name not in _PENALTIES]
    if params.mirostat and not is_greedy(params):
        return None
    if not names:
        return Cut((0.0,), 1) if is_greedy(params) else None
    if names[0] == "top_k":
        return Cut(_TOP_K_MARGINS, params.top_k)
    if names[0] == "min_p":
        # Rounding must not cost a token that the sampler itself would keep.
        return Cut((_ROUNDING - math.log(params.min_p),), max(1, params.min_keep))
    return None
