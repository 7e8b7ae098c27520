"""All that a stream of a message needs to be written, now or by another gateway."""

from llamero.api.anthropic.events import MessageEvents
from llamero.api.anthropic.shape import MessageShape


class MessageRecipe(MessageShape, frozen=True, kw_only=True, tag="message"):
    """How a message is streamed; it is one job's."""

    @property
    def num_jobs(self) -> int:
        """How many jobs it tells of."""
        return 1

    def make_writer(self) -> MessageEvents:
        """Begin to write it."""
        return MessageEvents(self)
