"""How does a computed beginning get into a slot, and what is saved before it is overwritten?"""

from pathlib import Path

from inference.backend.base import Backend
from inference.cache.blob_store import BlobStore
from inference.cache.disk_shelf import DiskShelf
from inference.cache.holders import NO_MATCH, Blob, Cells, Match, Scope
from inference.cache.prefix_cache import PrefixCache
from inference.cache.reuse_rules import MIN_GAIN, ReuseRules
from inference.engine.sequence import Sequence
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import RuntimeProfile

MAX_MOVED_TOKENS = 8192
"""Tokens of state that one step moves while others wait for it.

Copying or saving a token costs about a hundredth of computing it, so this delays a step by less
than a slice of a prompt does.
"""


def build_cache(backend: Backend, profile: RuntimeProfile, directory: Path | None) -> PrefixCache:
    """Make the prefix cache of a backend's context. States spill to disk only with a directory."""
    rules = ReuseRules(
        window=backend.state_window,
        granularity=profile.prefill_cut or 1,
        is_unified=profile.is_kv_unified,
    )
    shelf = DiskShelf(directory) if directory is not None and profile.prefix_disk_bytes else None
    store = BlobStore(profile.prefix_host_bytes, profile.prefix_disk_bytes, shelf)
    num_cells = profile.context_cells(backend.model.facts().context_length)
    return PrefixCache(profile.num_slots, num_cells=num_cells, rules=rules, store=store)


def scope_of(job: GenerationJob) -> Scope | None:
    """Tell with whom a job shares cells: only with what has the same salt and adapters."""
    return (job.salt, job.loras) if job.cache_prompt else None


class Lender:
    """Moves prefixes between slots and saved states; owned by the engine's thread."""

    def __init__(self, backend: Backend, cache: PrefixCache) -> None:
        self._backend, self._cache = backend, cache
        self._num_moved = 0

    def begin_step(self) -> None:
        """Allow a step's worth of moving."""
        self._num_moved = 0
        self._cache.settle()

    def lend(self, sequence: Sequence, *, is_urgent: bool) -> int | None:
        """Put the best known prefix into a sequence's slot; returns how many tokens it has.

        None while a better one is being computed, or where the step has moved enough already;
        what is urgent holds nobody up and moves in any case.
        """
        slot, scope = sequence.slot, scope_of(sequence.job)
        match = self._find(sequence, scope)
        if self._cache.is_catching_up(match):
            sequence.awaits = match
            return None
        num_moved = self._cache.num_moved(slot, match)
        is_first = self._num_moved == 0
        if not (is_urgent or is_first or self._num_moved + num_moved <= MAX_MOVED_TOKENS):
            return None
        self._num_moved += num_moved
        num_tokens = self._take(slot, match)
        sequence.pause_at = 0
        if scope is not None:
            fork = self._cache.find_fork(scope, sequence.tokens[: sequence.num_prompt])
            sequence.pause_at = fork if fork - num_tokens >= MIN_GAIN else 0
        self._cache.assign(
            slot,
            scope,
            sequence.tokens,
            num_promised=sequence.num_prompt,
            num_computed=num_tokens,
            source=match.holder,
            pause_at=sequence.pause_at,
        )
        return num_tokens

    def checkpoint(self, sequence: Sequence) -> None:
        """Save the state of a sequence that pauses where others will part from it."""
        if sequence.pause_at and self._cache.is_pausing(sequence.slot):
            self._save_now(sequence.slot)

    def release(self, slot: int, *, keeps_cells: bool) -> None:
        """Give a slot back, its cells usable for others or dropped."""
        num_computed = self._cache.num_computed(slot)
        num_kept = self._cache.release(slot, keeps_cells=keeps_cells)
        if num_kept and num_kept == num_computed:
            return  # where nothing stays, the backend may have more: a part of a call that failed
        if self._backend.keep_prefix(slot, num_kept) != num_kept:
            self._cache.clear(slot)

    def make_room(self, num_cells: int) -> bool:
        """Empty free slots until so many cells are free; tells whether they are.

        What only such a slot has is saved first, where it is worth that.
        """
        while self._cache.num_free_cells < num_cells:
            slot = self._cache.find_coldest()
            if slot is None:
                return False
            self._save(slot, 0)
            self.empty(slot)
        return True

    def empty(self, slot: int) -> None:
        """Drop what a slot holds that does not compute."""
        self._backend.keep_prefix(slot, 0)
        self._cache.clear(slot)

    def _find(self, sequence: Sequence, scope: Scope | None) -> Match:
        """Find what may be lent to a sequence; nothing where it needs rows of its whole prompt."""
        if scope is None or sequence.wants_prompt_rows:
            return NO_MATCH
        known = sequence.tokens
        if self._cache.is_exact:
            known = known[: sequence.num_prompt]
        return self._cache.find_prefix(sequence.slot, scope, known)

    def _take(self, slot: int, match: Match) -> int:
        """Bring a prefix into a slot; returns how many tokens are there now."""
        holder, num_tokens = match.holder, match.num_tokens
        if self._cache.is_in_place(slot, match):
            self._save(slot, num_tokens)
            return self._backend.keep_prefix(slot, num_tokens)
        if isinstance(holder, Blob) and num_tokens:
            return self._restore(slot, holder, num_tokens)
        self._save(slot, 0)
        if isinstance(holder, Cells) and num_tokens:
            return self._backend.copy_prefix(holder.slot, slot, num_tokens)
        return self._backend.keep_prefix(slot, 0)

    def _restore(self, slot: int, blob: Blob, num_tokens: int) -> int:
        """Bring a saved prefix into a slot; returns how many tokens are there now."""
        state = self._cache.load(blob)  # before saving, which may push it out
        self._save(slot, 0)
        has_room = self._cache.is_split or self.make_room(blob.num_tokens)
        if state is None or not has_room:
            return self._backend.keep_prefix(slot, 0)
        return self._backend.restore_state(slot, state, num_tokens)

    def _save(self, slot: int, num_kept: int) -> None:
        """Save the state of a slot that is about to be cut, if it is worth that."""
        if self._cache.is_worth_saving(slot, num_kept):
            self._save_now(slot)

    def _save_now(self, slot: int) -> None:
        state = self._backend.save_state(slot, self._cache.max_state_bytes)
        if state is not None:
            self._cache.save(slot, state)
