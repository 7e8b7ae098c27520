"""What llama-server adds to OpenAI's chunks where asked: the pace, and how far a prompt is."""

from collections.abc import Sequence
from typing import Any

import msgspec

from inference.protocol.events import Event, Pace, Progress, Started, Timings, Tokens
from llamero.api.collect import describe_timings
from llamero.api.generation import GenerationSettings, Prompt
from llamero.api.prompt_progress import PromptProgress


class StreamExtras(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream tells beside its text, and how long its prompts are."""

    num_prompt_tokens: tuple[int, ...]
    num_choices: int
    tells_timings: bool
    tells_progress: bool


def wanted_extras(settings: GenerationSettings, prompts: Sequence[Prompt]) -> StreamExtras | None:
    """Give what a request asked for; None where that is nothing."""
    if not settings.is_timed:
        return None
    return StreamExtras(
        num_prompt_tokens=tuple(len(prompt) for prompt in prompts),
        num_choices=settings.num_choices,
        tells_timings=settings.tells_timings,
        tells_progress=settings.pacing.tells_progress,
    )


class ChoiceExtras:
    """Follows one choice."""

    def __init__(self, extras: StreamExtras, choice: int) -> None:
        self._extras = extras
        self._progress = PromptProgress(extras.num_prompt_tokens[choice // extras.num_choices])
        self._timings = Timings()
        self._num_cached = 0
        self._num_told = 0

    def note(self, event: Event) -> dict[str, Any] | None:
        """Give the fields of a chunk of its own, if an event deserves one."""
        if type(event) is Pace:
            self._timings = event.timings
        if type(event) is Started:
            self._num_cached = event.num_cached_tokens
        if not isinstance(event, Started | Progress) or not self._extras.tells_progress:
            return None
        progress = self._progress.note(event)
        return None if progress is None else {"prompt_progress": progress}

    def beside(self, event: Tokens) -> dict[str, Any]:
        """Give the fields that go with text."""
        self._num_told += len(event.token_ids)
        if not self._extras.tells_timings:
            return {}
        return {"timings": describe_timings(self._timings, self._num_cached, self._num_told)}
