"""The streams that a gateway follows: each reader of a job has one of its own."""

from collections.abc import Iterator

from llamero.dispatch.stream import JobStream

MOST_READERS = 16
"""Of one job at one gateway: each of its tokens costs something for each of them."""


class Followed:
    """Streams by job. Most jobs have one reader; those that go on by themselves may have more."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[JobStream, ...]] = {}

    def of(self, job: str) -> tuple[JobStream, ...]:
        """Give the streams of a job, the oldest first."""
        return self._of.get(job, ())

    def add(self, stream: JobStream) -> None:
        """Follow by one more stream."""
        self._of[stream.job.id] = (*self.of(stream.job.id), stream)

    def discard(self, stream: JobStream) -> None:
        """Follow no more by this stream, if anybody did."""
        left = tuple(other for other in self.of(stream.job.id) if other is not stream)
        if left:
            self._of[stream.job.id] = left
        else:
            self._of.pop(stream.job.id, None)

    def __contains__(self, stream: JobStream) -> bool:
        return stream in self.of(stream.job.id)

    def __iter__(self) -> Iterator[JobStream]:
        """Give every stream; none is added or discarded meanwhile."""
        for streams in self._of.values():
            yield from streams

    def __bool__(self) -> bool:
        return bool(self._of)
