"""The events of a resumable stream, each with an id that tells what came before it.

With one choice the ids are 1, 2, 3… With several, the choices arrive in an order that no other
reading of them repeats, so an id counts what was told of each: first the events that belong to no
choice (the beginning and the end), then those of each choice, as in ``2.5.4``.
"""

import re

from llamero.api.run import ChoiceEvent
from llamero.api.sse import ChunkWriter
from llamero.errors import InvalidValue, LlameroError

Place = tuple[int, ...]
_ID = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*")
_END = b"\n\n"


def num_lanes(num_jobs: int) -> int:
    """Give how many numbers an id has."""
    return 1 if num_jobs == 1 else num_jobs + 1


def read_place(text: str, num_jobs: int, param: str) -> Place:
    """Read the id of the last event a client has; an empty one means that it has none."""
    if not text:
        return (0,) * num_lanes(num_jobs)
    place = tuple(map(int, text.split("."))) if _ID.fullmatch(text) else ()
    if len(place) != num_lanes(num_jobs):
        raise no_such_event(param)
    return place


def no_such_event(param: str) -> InvalidValue:
    """Say that an id is none of this stream's."""
    return InvalidValue(param, f"{param} must be the id of an event of this stream.")


class NumberedChunks:
    """Writes as another writer does, with ids, and without what a client has already.

    What was told before is written again from the first event on and dropped, so that the rest is
    what it would have been: roles, offsets and counts included. ``after`` came in ``param``.
    """

    def __init__(
        self,
        writer: ChunkWriter,
        num_jobs: int,
        after: Place | None = None,
        param: str = "Last-Event-ID",
    ) -> None:
        self._writer = writer
        self._param = param
        self._has_lanes = num_jobs > 1
        self._written = [0] * num_lanes(num_jobs)
        self._told = list(after or self._written)

    def start(self) -> bytes:
        """Give what comes before the first event."""
        return self._number(0, self._writer.start())

    def write(self, event: ChoiceEvent) -> bytes:
        """Give the chunks of an event, or nothing."""
        lane = event.choice + 1 if self._has_lanes else 0
        return self._number(lane, self._writer.write(event))

    def end(self) -> bytes:
        """Give what comes last. Raises InvalidValue if the client's place was never reached."""
        chunks = self._number(0, self._writer.end())
        if self._written != self._told:
            raise no_such_event(self._param)
        return chunks

    def fail(self, error: LlameroError) -> bytes:
        """Give what ends the stream badly; it has no id, since nothing can follow it."""
        return self._writer.fail(error)

    def _number(self, lane: int, chunks: bytes) -> bytes:
        numbered = []
        for chunk in chunks.split(_END)[:-1]:
            self._written[lane] += 1
            if self._written[lane] > self._told[lane]:
                self._told[lane] = self._written[lane]
                name = ".".join(map(str, self._told)).encode()
                numbered.append(b"id: " + name + b"\n" + chunk + _END)
        return b"".join(numbered)


class SkippedBytes:
    """Writes as another writer does, but for so many of the first bytes.

    For streams that are told the same way each time: those of one choice.
    """

    def __init__(self, writer: ChunkWriter, num_skipped: int) -> None:
        self._writer = writer
        self._num_left = num_skipped

    def start(self) -> bytes:
        """Give what comes before the first event."""
        return self._skip(self._writer.start())

    def write(self, event: ChoiceEvent) -> bytes:
        """Give the chunks of an event, or nothing."""
        return self._skip(self._writer.write(event))

    def end(self) -> bytes:
        """Give what comes last. Raises InvalidValue where there are not so many bytes."""
        chunks = self._skip(self._writer.end())
        if self._num_left:
            raise InvalidValue("from", "from is more than the stream has.")
        return chunks

    def fail(self, error: LlameroError) -> bytes:
        """Give what comes last where a stream ends badly."""
        return self._writer.fail(error)

    def _skip(self, chunks: bytes) -> bytes:
        num_skipped = min(self._num_left, len(chunks))
        self._num_left -= num_skipped
        return chunks[num_skipped:]
