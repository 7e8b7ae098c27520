"""llama-server's ``prompt_progress``: how far a prompt is before its answer begins."""

from typing import Any

from inference.protocol.events import Progress, Started


class PromptProgress:
    """Follows the prompt of one choice. What it tells only grows, whichever replica computes."""

    def __init__(self, num_tokens: int) -> None:
        self._num_tokens = num_tokens
        self._num_cached = 0
        self._num_processed = -1

    def note(self, event: Started | Progress) -> dict[str, Any] | None:
        """Give what an event tells anew."""
        if isinstance(event, Progress):
            return self._advance(event.num_processed, event.time_ms)
        if self._num_processed < 0:
            self._num_cached = event.num_cached_tokens
        return self._advance(event.num_cached_tokens, 0.0)

    def _advance(self, num_processed: int, time_ms: float) -> dict[str, Any] | None:
        if num_processed <= self._num_processed:
            return None
        self._num_processed = num_processed
        return {
            "total": self._num_tokens,
            "cache": self._num_cached,
            "processed": num_processed,
            "time_ms": round(time_ms),
        }
