"""What an answer is made of, as numbered frames, and its end."""

from inference.protocol import events
from llamero.api.turn import (
    CallArguments,
    CallStarted,
    Piece,
    Reasoning,
    Text,
    TurnFormat,
    finish_word,
)
from llamero.errors import InvalidValue
from llamero.streaming import frames

NOTHING_DONE = events.Done(events.FinishReason.CANCELLED, 0, 0, 0)


class TurnFrames:
    """Writes the frames of one answer. The first ``num_known`` are not told again."""

    def __init__(self, job_id: str, turn: TurnFormat, num_known: int) -> None:
        self._id = job_id
        self._num_known = num_known
        self._num_written = 0
        self._reader = None if turn.is_plain else turn.reader(0)

    @property
    def is_known(self) -> bool:
        """Whether what comes next was told before."""
        return self._num_written < self._num_known

    def tell(self, event: events.Tokens) -> list[frames.ServerFrame]:
        """Give the frames of new text."""
        if self._reader is not None:
            return self._write(self._reader.feed(event.text))
        if not event.text:
            return []
        is_known = self.is_known
        self._num_written += 1
        return [] if is_known else [frames.Delta(self._id, self._num_written, event.text)]

    def end(self, done: events.Done) -> list[frames.ServerFrame]:
        """Give the last frames. Raises InvalidValue if a whole answer has fewer than are known."""
        told = self._write(self._reader.finish()) if self._reader is not None else []
        if self.is_known and done.finish_reason is not events.FinishReason.CANCELLED:
            raise InvalidValue("after", "after must be the seq of a frame of this chat, or 0.")
        return [*told, self._describe_end(done)]

    def _write(self, pieces: list[Piece]) -> list[frames.ServerFrame]:
        written: list[frames.ServerFrame] = []
        for piece in pieces:
            is_known = self.is_known
            self._num_written += 1
            if not is_known:
                written.append(self._frame(piece))
        return written

    def _frame(self, piece: Piece) -> frames.ContentFrame:
        job_id, seq = self._id, self._num_written
        match piece:
            case Text():
                return frames.Delta(job_id, seq, piece.text)
            case Reasoning():
                return frames.Reasoning(job_id, seq, piece.text)
            case CallStarted():
                return frames.Call(job_id, seq, piece.index, piece.id, piece.name)
            case CallArguments():
                return frames.Arguments(job_id, seq, piece.index, piece.text)

    def _describe_end(self, done: events.Done) -> frames.Done:
        is_cancelled = done.finish_reason is events.FinishReason.CANCELLED
        timings, reader = done.timings, self._reader
        return frames.Done(
            id=self._id,
            finish_reason="cancelled" if is_cancelled else finish_word(done.finish_reason, reader),
            usage=frames.Usage(
                prompt_tokens=done.num_prompt_tokens,
                completion_tokens=done.num_completion_tokens,
                total_tokens=done.num_prompt_tokens + done.num_completion_tokens,
                cached_tokens=done.num_cached_tokens,
                reasoning_tokens=done.num_reasoning_tokens,
            ),
            timings=frames.Timings(
                prompt_n=timings.num_prompt_computed,
                prompt_ms=timings.prompt_ms,
                prompt_per_second=_rate(timings.num_prompt_computed, timings.prompt_ms),
                predicted_n=done.num_completion_tokens,
                predicted_ms=timings.predicted_ms,
                predicted_per_second=_rate(done.num_completion_tokens, timings.predicted_ms),
            ),
        )


def _rate(count: int, milliseconds: float) -> float:
    return count * 1000 / milliseconds if milliseconds > 0 else 0.0
