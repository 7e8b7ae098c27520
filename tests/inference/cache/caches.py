"""Prefix caches that hold something from the start."""

from inference.cache.blob_store import BlobStore
from inference.cache.prefix_cache import PrefixCache
from inference.cache.reuse_rules import ReuseRules

MEBIBYTE = 1 << 20


def make_cache(
    *contents: tuple[str, list[int]],
    num_slots: int = 4,
    rules: ReuseRules | None = None,
    host_bytes: int = MEBIBYTE,
) -> PrefixCache:
    """Build a cache whose first slots hold finished sequences."""
    cache = PrefixCache(
        num_slots, num_cells=4096, rules=rules or ReuseRules(), store=BlobStore(host_bytes)
    )
    for slot, (salt, tokens) in enumerate(contents):
        run(cache, slot, salt, tokens)
        cache.release(slot, keeps_cells=True)
    return cache


def run(cache: PrefixCache, slot: int, salt: str, tokens: list[int]) -> None:
    """Lease a slot and compute all of some tokens in it."""
    cache.lease(slot)
    cache.assign(slot, salt, list(tokens), num_promised=len(tokens))
    cache.advance(slot, len(tokens))
