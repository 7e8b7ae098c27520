"""llama-server's completion frames while an answer streams."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from inference.protocol.events import (
    Done,
    Pace,
    Progress,
    Started,
    Timings,
    Tokens,
)
from llamero.api.collect import Choice, describe_timings
from llamero.api.native.completion_answer import CompletionAnswer
from llamero.api.prompt_progress import PromptProgress
from llamero.api.run import ChoiceEvent
from llamero.api.sse import data_line, native_error
from llamero.errors import LlameroError


class CompletionRecipe(msgspec.Struct, frozen=True, kw_only=True, tag="completion"):
    """All that a stream needs to be written, now or by another gateway."""

    answer: CompletionAnswer
    num_jobs: int

    def make_writer(self) -> "CompletionChunks":
        """Begin to write it."""
        return CompletionChunks(self.answer, self.num_jobs)


@dataclass(slots=True)
class _StreamedChoice:
    """What is known of a choice while it streams; ``held`` tokens wait for their text."""

    told: Choice
    progress: PromptProgress
    held: list[int] = field(default_factory=list)
    timings: Timings = field(default_factory=Timings)
    num_cached: int = 0
    has_new_line: bool = False


class CompletionChunks:
    """Streams a run in llama-server's frames; there is no ``[DONE]`` at the end."""

    def __init__(self, answer: CompletionAnswer, num_jobs: int) -> None:
        self._answer = answer
        self._settings = answer.request.settings
        self._choices = [
            _StreamedChoice(Choice(index), PromptProgress(self._num_prompt_tokens(index)))
            for index in range(num_jobs)
        ]

    def start(self) -> bytes:
        """Give nothing: the first frame is the first text."""
        return b""

    def write(self, event: ChoiceEvent) -> bytes:
        """Give a frame for new text, for progress if it was asked for, and for the end."""
        index, content = event
        choice = self._choices[index]
        match content:
            case Tokens():
                return self._write_tokens(choice, content)
            case Pace():
                choice.timings = content.timings
            case Started():
                choice.told.slot = content.slot
                choice.num_cached = content.num_cached_tokens
                return self._write_progress(choice, content)
            case Progress():
                return self._write_progress(choice, content)
            case Done():
                return self._write_end(choice, content)
        return b""

    def end(self) -> bytes:
        """Give nothing more."""
        return b""

    def fail(self, error: LlameroError) -> bytes:
        """Give the error."""
        return native_error(error)

    def _write_tokens(self, choice: _StreamedChoice, content: Tokens) -> bytes:
        choice.told.token_ids.extend(content.token_ids)
        choice.has_new_line = choice.has_new_line or "\n" in content.text
        choice.held.extend(content.token_ids)
        if not content.text and not content.logprobs:
            return b""
        frame = self._frame(choice) | {"content": content.text, "tokens": choice.held[:]}
        choice.held.clear()
        if content.logprobs:
            frame["completion_probabilities"] = self._answer.probabilities(content.logprobs)
        return data_line(frame)

    def _write_progress(self, choice: _StreamedChoice, content: Started | Progress) -> bytes:
        if not self._settings.pacing.tells_progress:
            return b""
        progress = choice.progress.note(content)
        if progress is None:
            return b""
        if type(content) is Progress:
            num_computed = content.num_processed - choice.num_cached
            choice.timings = Timings(content.time_ms, 0.0, num_computed)
        return data_line(self._frame(choice) | {"prompt_progress": progress})

    def _write_end(self, choice: _StreamedChoice, done: Done) -> bytes:
        document = self._answer.ending(choice.told.index, done, choice.told.slot)
        document["tokens"] = choice.held
        document["has_new_line"] = choice.has_new_line
        return data_line(self._answer.select(document))

    def _frame(self, choice: _StreamedChoice) -> dict[str, Any]:
        num_told = len(choice.told.token_ids)
        frame = {
            "index": choice.told.index,
            "content": "",
            "tokens": [],
            "stop": False,
            "id_slot": choice.told.slot,
            "tokens_predicted": num_told,
            "tokens_evaluated": self._num_prompt_tokens(choice.told.index),
        }
        if self._settings.tells_timings:
            frame["timings"] = describe_timings(choice.timings, choice.num_cached, num_told)
        return frame

    def _num_prompt_tokens(self, index: int) -> int:
        return self._answer.num_prompt_tokens[index // self._settings.num_choices]
