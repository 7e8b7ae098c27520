"""Sizes by which the backend works, and which all must know who foretell what it will do."""

PHYSICAL_BATCH = 512
"""Tokens that a context for generation computes in one pass, at most."""

MAX_INPUTS = 64
"""Inputs that a context for embeddings holds at once; its batches are multiples of it."""

MAX_VOCAB_PADDING = 128
"""Unused tokens at the end by which vocabularies of one family may differ: they round numbers."""
