"""How long may a slice of a prompt be, if it shall hold others back no longer than another does?"""

from inference.engine.plan import StepPlan

SHORTEST_SLICE = 64
"""Tokens below which llama.cpp's kernels for CPUs attend one by one: no time is won there."""

MAX_STRETCH = 2.0
"""How much longer a slice may take than one at the beginning of a context."""

_DECAY = 0.97
_MIN_STEPS = 8


class SliceCost:
    """Learns what a token of a prompt costs: so much, and so much for each cell it attends to.

    Deep in a long prompt a token may cost several times as much as at its beginning. Seconds are
    fitted to both by least squares, in which older steps weigh less.
    """

    def __init__(self) -> None:
        self._decode_seconds = 0.0
        self._num_steps = 0
        self._tokens_squared = self._tokens_cells = self._cells_squared = 0.0
        self._tokens_seconds = self._cells_seconds = 0.0

    def observe(self, plan: StepPlan, seconds: float) -> None:
        """Learn from a step and its time."""
        tokens, cells = plan.num_prefill_tokens, plan.num_prefill_cells
        if not tokens:
            self._decode_seconds = seconds
            return
        if plan.num_decode:
            seconds = max(0.0, seconds - self._decode_seconds)
        self._num_steps += 1
        self._tokens_squared = _DECAY * self._tokens_squared + tokens * tokens
        self._tokens_cells = _DECAY * self._tokens_cells + tokens * cells
        self._cells_squared = _DECAY * self._cells_squared + cells * cells
        self._tokens_seconds = _DECAY * self._tokens_seconds + tokens * seconds
        self._cells_seconds = _DECAY * self._cells_seconds + cells * seconds

    def shorten(self, num_tokens: int, start: int) -> int:
        """Give the length of a slice at a position, where one at the beginning has so many tokens.

        A half, a quarter and so on of them, while that takes too long and is no shorter than pays.
        """
        stretch = 1 + self._cell_share() * start
        while stretch > MAX_STRETCH and num_tokens // 2 >= SHORTEST_SLICE:
            num_tokens //= 2
            stretch /= 2
        return num_tokens

    def _cell_share(self) -> float:
        """Tell what attending to a cell costs, as a part of what a token costs without."""
        tokens, mixed, cells = self._tokens_squared, self._tokens_cells, self._cells_squared
        if self._num_steps < _MIN_STEPS or tokens * cells - mixed**2 <= 1e-6 * mixed**2:
            return 0.0
        token_seconds = self._tokens_seconds * cells - self._cells_seconds * mixed
        cell_seconds = self._cells_seconds * tokens - self._tokens_seconds * mixed
        return cell_seconds / token_seconds if token_seconds > 0 < cell_seconds else 0.0
