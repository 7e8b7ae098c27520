"""How many passes over the weights does a batch take, where each sequence has cells of its own?"""

from collections.abc import Sequence


def count_passes(seq_ids: Sequence[int], counts: Sequence[int]) -> int:
    """Foresee how llama.cpp tears a batch apart that has ``counts[i]`` tokens of ``seq_ids[i]``.

    A pass takes neighbours, each with the same number of tokens, and leaves what is over to later
    ones. ``seq_ids`` are ordered.
    """
    left = list(zip(seq_ids, counts, strict=True))
    num_passes = 0
    while left:
        run = 1
        while run < len(left) and left[run][0] == left[run - 1][0] + 1:
            run += 1
        taken = min(count for _, count in left[:run])
        left[:run] = [(seq_id, count - taken) for seq_id, count in left[:run] if count > taken]
        num_passes += 1
    return num_passes
