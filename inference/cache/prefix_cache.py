"""What of a prompt is already computed, by whom, and what must be saved before it is lost?

Each slot of the engine owns one KV sequence. Its cells outlive the job that computed them, until
the slot is taken again; then their state may be saved outside the KV cache. A job may reuse what
was computed in its own scope only, wherever it lies.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence

from inference.cache.blob_store import BlobStore
from inference.cache.cell_ledger import CellLedger
from inference.cache.holders import NO_MATCH, Blob, Cells, Holder, Match, Scope
from inference.cache.radix_tree import RadixTree
from inference.cache.reuse_rules import MAX_SAVED_WASTE, MIN_GAIN, ReuseRules, is_better

UNBOUND = ReuseRules()


class PrefixCache:
    """The cells of all slots and the saved states, and who has leased what."""

    def __init__(
        self,
        num_slots: int,
        *,
        num_cells: int = sys.maxsize,
        rules: ReuseRules = UNBOUND,
        store: BlobStore | None = None,
    ) -> None:
        self._cells = tuple(Cells(slot) for slot in range(num_slots))
        self._trees: dict[Scope, RadixTree[Holder]] = {}
        self._ledger = CellLedger(num_slots, num_cells, is_shared=rules.is_unified)
        self._store = BlobStore(0) if store is None else store
        self._rules = rules
        self._clock = 0

    @property
    def num_cells(self) -> int:
        """How many cells hold something computed; shared ones count once."""
        return self._ledger.num_used

    @property
    def num_total_cells(self) -> int:
        """How many cells there are."""
        return self._ledger.num_cells

    def limit_cells(self, num_cells: int) -> None:
        """Count on no more cells than these, at least those in use."""
        self._ledger.num_cells = max(num_cells, self._ledger.num_used)

    @property
    def num_free_cells(self) -> int:
        """How many cells hold nothing."""
        return self._ledger.num_cells - self._ledger.num_used

    @property
    def num_available_cells(self) -> int:
        """How many cells are free, or held by nothing but slots that do not compute."""
        idle = {cells.slot for cells in self._cells if not cells.is_computing}
        return self.num_free_cells + self._ledger.num_held_by(idle)

    @property
    def max_state_bytes(self) -> int:
        """The largest state that could be saved; 0 where none is."""
        return self._store.max_bytes

    @property
    def num_saved(self) -> int:
        """How many states are kept outside the cache."""
        return len(self._store)

    @property
    def is_split(self) -> bool:
        """Whether each slot has cells of its own, which none can share."""
        return not self._rules.is_unified

    @property
    def is_exact(self) -> bool:
        """Whether only tokens computed as a prompt may stand for those of a prompt."""
        return self._rules.granularity > 1

    def free_slots(self) -> list[int]:
        """List the slots that nobody has leased, the lowest first."""
        return [cells.slot for cells in self._cells if not cells.is_leased]

    def num_computed(self, slot: int) -> int:
        """Tell how many tokens a slot's sequence has."""
        return self._cells[slot].num_computed

    def last_used(self, slot: int) -> int:
        """Tell when a slot was last of use, on a clock that only orders."""
        return self._cells[slot].used_at

    def find_coldest(self) -> int | None:
        """Find the slot to empty first: what others have too, then the least recently used.

        Last those that are leased: who has not begun to compute there may have a use for it.
        """
        idle = [one.slot for one in self._cells if one.num_computed and not one.is_computing]
        return min(idle, key=self._warmth, default=None)

    def lease(self, slot: int) -> None:
        """Take a free slot; its cells stay what they were until ``assign``."""
        cells = self._cells[slot]
        assert not cells.is_leased
        cells.is_leased, cells.order = True, self._tick()

    def assign(
        self,
        slot: int,
        scope: Scope | None,
        tokens: list[int],
        *,
        num_promised: int,
        num_computed: int = 0,
        source: Holder | None = None,
        pause_at: int = 0,
    ) -> None:
        """Say what a leased slot computes from now on; ``tokens`` is shared, not copied.

        Its first ``num_computed`` come from the source. Without a scope nobody may share them.
        """
        cells = self._cells[slot]
        assert cells.is_leased
        self._account(slot, source, num_computed)
        self._forget(cells)
        cells.is_computing = True
        self._use_up(source, num_computed)
        cells.scope, cells.tokens, cells.num_computed = scope, tokens, num_computed
        cells.num_usable = num_promised if self.is_exact else sys.maxsize
        if scope is not None:
            cells.num_promised, cells.pause_at = num_promised, pause_at
            self._tree(scope).insert(tokens[:num_promised], cells)

    def advance(self, slot: int, num_computed: int) -> None:
        """Note how many tokens of a leased slot are computed."""
        cells = self._cells[slot]
        num_more = num_computed - cells.num_computed
        cells.num_computed = num_computed
        if num_more >= 0:
            self._ledger.extend(slot, num_more)
        else:
            self._ledger.cut(slot, num_computed)

    def shift(self, slot: int, num_kept: int, num_dropped: int) -> None:
        """Note that a leased slot lost tokens behind the first ones, and others moved up.

        What moved was computed from what is lost: only the first tokens may be reused.
        """
        cells = self._cells[slot]
        self._ledger.drop(slot, num_kept, num_dropped)
        cells.num_computed -= num_dropped
        cells.num_usable = min(cells.num_usable, num_kept)
        cells.pause_at = 0

    def release(self, slot: int, *, keeps_cells: bool) -> int:
        """Give a slot back; returns how many of its tokens stay, for others to use."""
        cells = self._cells[slot]
        assert cells.is_leased
        scope, num_kept = cells.scope, cells.num_tokens
        if not keeps_cells or scope is None or not self._rules.can_cut(cells, num_kept, cells):
            num_kept = 0
        tokens = cells.tokens[:num_kept]
        self._forget(cells)
        self._ledger.cut(slot, num_kept)
        cells.is_leased = cells.is_computing = False
        cells.used_at = self._tick()
        if scope is not None and tokens:
            cells.scope, cells.tokens = scope, tokens
            cells.num_computed = cells.num_promised = cells.num_usable = num_kept
            self._tree(scope).insert(tokens, cells)
        return num_kept

    def clear(self, slot: int) -> None:
        """Forget what a slot holds that does not compute."""
        cells = self._cells[slot]
        assert not cells.is_computing
        self._forget(cells)
        self._ledger.cut(slot, 0)

    def find_prefix(self, slot: int, scope: Scope, prompt: Sequence[int]) -> Match:
        """Find the best beginning of a prompt for a leased slot. Changes nothing.

        At least one token of the prompt is left to compute, since sampling needs its logits.
        Cells in place win unless others save enough; only slots leased earlier are waited for.
        """
        own = self._cells[slot]
        here = now = later = NO_MATCH
        for length, holder in self._matches(scope, prompt, len(prompt) - 1):
            if length + MIN_GAIN <= max(now.num_tokens, here.num_tokens):
                break
            match = self._rules.judge(holder, length, own)
            if holder is own:
                here = match
            elif is_better(match, now):
                now = match
            if match.num_promised > later.num_promised:
                later = match
        best = now if now.num_tokens >= here.num_tokens + MIN_GAIN else here
        return later if later.num_promised >= best.num_tokens + MIN_GAIN else best

    def find_fork(self, scope: Scope, prompt: Sequence[int]) -> int:
        """Tell where a prompt leaves the way of others, if what they hold cannot be cut there.

        Who computes the prompt should pause there: the state of that moment serves all who come
        the same way. 0 where there is no such place.
        """
        if self._rules.can_cut_all:
            return 0
        longest = next(iter(self._matches(scope, prompt, len(prompt) - 1)), None)
        return self._rules.floor(longest[0]) if longest else 0

    def is_catching_up(self, match: Match, *, is_awaited: bool = False) -> bool:
        """Tell whether what a match promised is still being computed, and worth waiting for."""
        return self._rules.is_catching_up(match, is_awaited=is_awaited)

    def is_in_place(self, slot: int, match: Match) -> bool:
        """Tell whether a match lies in the slot itself."""
        return match.holder is self._cells[slot]

    def matches_in_place(self, scope: Scope, prompt: Sequence[int]) -> dict[int, int]:
        """Tell for each free slot that holds a beginning of a prompt how much of it."""
        lengths = {}
        for length, holder in self._matches(scope, prompt, len(prompt) - 1):
            if isinstance(holder, Cells) and not holder.is_leased:
                lengths[holder.slot] = self._rules.judge(holder, length, holder).num_tokens
        return lengths

    def num_lost(self, slot: int, num_kept: int) -> int:
        """Tell how much of what a slot holds nobody would, if it kept only the first tokens."""
        cells = self._cells[slot]
        if cells.scope is None:
            return 0
        num_left = num_kept
        for length, holder in self._matches(cells.scope, cells.tokens, cells.num_tokens):
            if length <= num_left:
                break
            num_shared = min(length, holder.num_tokens)
            if holder is not cells and self._rules.can_cut(holder, num_shared, None):
                num_left = max(num_left, num_shared)
        return max(0, cells.num_tokens - num_left)

    def num_moved(self, slot: int, match: Match) -> int:
        """Tell how many tokens are copied for a slot to take a match, and to save what it had."""
        is_here = self.is_in_place(slot, match)
        num_moved = 0
        if match.num_tokens and not is_here:
            num_moved = self._rules.num_moved(match.holder)
        if self.is_worth_saving(slot, match.num_tokens if is_here else 0):
            num_moved += self._cells[slot].num_computed
        return num_moved

    def is_worth_saving(self, slot: int, num_kept: int) -> bool:
        """Tell whether a slot's state should be saved before it is cut to its first tokens."""
        if not self.max_state_bytes:
            return False
        num_lost = self.num_lost(slot, num_kept)
        num_saved = self._cells[slot].num_computed
        return num_lost >= MIN_GAIN and num_lost * MAX_SAVED_WASTE >= num_saved

    def is_pausing(self, slot: int) -> bool:
        """Tell whether a slot is where its state should be saved, and none is."""
        cells = self._cells[slot]
        if not 0 < cells.pause_at == cells.num_computed or not self.max_state_bytes:
            return False
        found = self._matches(cells.scope, cells.tokens, cells.pause_at)
        return not any(isinstance(one, Blob) and one.num_tokens == length for length, one in found)

    def save(self, slot: int, state: memoryview) -> None:
        """Keep the state of all that a slot holds, instead of shorter states it stands for."""
        cells = self._cells[slot]
        assert cells.scope is not None and cells.num_tokens == cells.num_computed
        blob = Blob(cells.scope, cells.num_computed, state)
        tree = self._tree(cells.scope)
        tree.insert(cells.tokens[: blob.num_tokens], blob)
        for other in list(tree.beginnings(blob)):
            if isinstance(other, Blob) and self._rules.stands_for(blob, other):
                self._discard(other)
        self._drop(self._store.put(blob))

    def load(self, blob: Blob) -> memoryview | None:
        """Give a saved state; None, and forgotten, where it was damaged."""
        state = self._store.load(blob)
        if state is None:
            self._discard(blob)
        return state

    def settle(self) -> None:
        """Note what has become of states on their way to disk."""
        self._drop(self._store.settle())

    def close(self) -> None:
        """Forget everything that was saved."""
        self._store.close()

    def check_integrity(self) -> None:
        """Assert what must always hold."""
        self._ledger.check_integrity()
        self._store.check_integrity()
        num_holders = 0
        for scope, tree in self._trees.items():
            assert len(tree), "a tree without holders is kept"
            tree.check_integrity()
            num_holders += len(tree)
            assert all(self._is_held(scope, holder) for holder in tree)
        for cells in self._cells:
            assert self._ledger.length(cells.slot) == cells.num_computed <= len(cells.tokens)
            assert cells.is_leased or cells.num_computed == len(cells.tokens) == cells.num_tokens
        num_cells = sum(cells.num_promised > 0 for cells in self._cells)
        assert num_holders == num_cells + len(self._store)

    def _warmth(self, slot: int) -> tuple[bool, bool, int]:
        cells = self._cells[slot]
        return cells.is_leased, self.num_lost(slot, 0) >= MIN_GAIN, cells.used_at

    def _is_held(self, scope: Scope, holder: Holder) -> bool:
        if isinstance(holder, Blob):
            return holder.scope == scope and holder in self._store
        return holder.scope == scope and holder.num_promised > 0

    def _matches(
        self, scope: Scope, tokens: Sequence[int], limit: int
    ) -> Iterator[tuple[int, Holder]]:
        tree = self._trees.get(scope)
        return tree.matches(tokens, limit) if tree else iter(())

    def _account(self, slot: int, source: Holder | None, num_computed: int) -> None:
        """Count the cells that a slot has now that it has taken a prefix."""
        if source is self._cells[slot]:
            self._ledger.cut(slot, num_computed)
            return
        self._ledger.cut(slot, 0)
        if isinstance(source, Cells):
            self._ledger.copy(source.slot, slot, num_computed)
        else:
            self._ledger.extend(slot, num_computed)

    def _use_up(self, source: Holder | None, num_tokens: int) -> None:
        """Note that a holder was of use; a saved state that a slot has now goes."""
        if isinstance(source, Cells):
            source.used_at = self._tick()
        elif source is not None and source in self._store:
            if self._rules.can_cut_all and source.num_tokens - num_tokens < MIN_GAIN:
                self._discard(source)
            else:
                self._store.touch(source)

    def _forget(self, cells: Cells) -> None:
        if cells.num_promised:
            self._remove(cells)
        cells.forget()

    def _discard(self, blob: Blob) -> None:
        self._store.discard(blob)
        self._remove(blob)

    def _drop(self, blobs: Iterable[Blob]) -> None:
        """Forget blobs that the store has let go."""
        for blob in blobs:
            self._remove(blob)

    def _tree(self, scope: Scope) -> RadixTree[Holder]:
        return self._trees.setdefault(scope, RadixTree())

    def _remove(self, holder: Holder) -> None:
        tree = self._trees[holder.scope]
        tree.remove(holder)
        if not len(tree):
            del self._trees[holder.scope]

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
