"""When does a stream say something, though there is no new text?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pacing:
    """How long a stream may be silent, and whether it tells how far its prompt is.

    ``ping_seconds`` None: as long as any; below 0: for ever.
    A stream that tells progress begins with the first word of it; others wait for the first token,
    so that what fails before it is a plain HTTP error.
    ``comment_end``: once an event had an id, OpenAI's Python client takes the empty line behind a
    comment for an event, and fails on its empty data. So there is none in streams with ids.
    """

    ping_seconds: float | None = None
    tells_progress: bool = False
    comment_end: bytes = b"\n\n"

    @property
    def may_ping(self) -> bool:
        """Whether comments may be sent at all."""
        return self.ping_seconds is None or self.ping_seconds >= 0


AS_USUAL = Pacing()


def read_pacing(fields: Mapping[str, Any]) -> Pacing:
    """Read validated fields; an interval of 0 is taken as a second."""
    seconds = fields.get("sse_ping_interval")
    return Pacing(
        ping_seconds=None if seconds is None else float(seconds or 1),
        tells_progress=fields.get("return_progress", False),
    )
